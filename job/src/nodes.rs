//! Lists of nodes as Slurm writes them: `gpu[07-09,12],login`.

/// The most nodes that a list may name, which is the most processes of a job.
const MOST: usize = crate::MOST_PROCESSES;

/// The first node of a list; none if the list makes no sense.
pub fn first(list: &str) -> Option<String> {
    all(list)?.into_iter().next()
}

/// The nodes of a list, in its order; none if the list makes no sense, or has more than 65,536.
pub fn all(list: &str) -> Option<Vec<String>> {
    let mut nodes = Vec::new();
    for entry in entries(list)? {
        expand(entry, &mut nodes)?;
    }
    (!nodes.is_empty()).then_some(nodes)
}

/// The entries of a list, which commas separate outside of brackets.
fn entries(list: &str) -> Option<Vec<&str>> {
    let (mut entries, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return None,
            ',' if !inside => {
                entries.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    entries.push(&list[begin..]);
    (!inside && entries.iter().all(|entry| !entry.is_empty())).then_some(entries)
}

/// Appends the nodes of an entry: a name, in which a range stands for each of its numbers.
fn expand(entry: &str, nodes: &mut Vec<String>) -> Option<()> {
    let Some((before, rest)) = entry.split_once('[') else {
        return push(entry.to_owned(), nodes);
    };
    let (ranges, after) = rest.split_once(']')?;
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        for number in first..=last {
            // Numbers are as wide as the first of their range.
            expand(&format!("{before}{number:0width$}{after}", width = low.len()), nodes)?;
        }
    }
    Some(())
}

fn push(node: String, nodes: &mut Vec<String>) -> Option<()> {
    nodes.push(node);
    (nodes.len() <= MOST).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_each_node_in_its_order() {
        for (list, nodes) in [
            ("localhost", &["localhost"][..]),
            ("b,a", &["b", "a"]),
            ("gpu[07-09,12],login", &["gpu07", "gpu08", "gpu09", "gpu12", "login"]),
            ("r[1-2]n[8-9]", &["r1n8", "r1n9", "r2n8", "r2n9"]),
            ("n[9-11]-ib", &["n9-ib", "n10-ib", "n11-ib"]),
        ] {
            assert_eq!(all(list).unwrap(), nodes, "{list}");
        }
    }

    #[test]
    fn a_list_without_sense_names_nothing() {
        for list in ["", ",", "a,", "a[", "a]", "a[1", "a[x]", "a[1-x]", "a[[1]]", "n[0-99999999]"]
        {
            assert_eq!(all(list), None, "{list}");
        }
    }
}
