"use strict";
// Tells the page around a report what a browser sees of the report: a line for each finding.
addEventListener("load", () => {
  const found = [];
  const root = document.documentElement;
  const background = () => getComputedStyle(document.body).backgroundColor;
  found.push(`inner-width ${innerWidth}`);
  found.push(`scroll-width ${root.scrollWidth}`);
  found.push(`background ${background()}`);

  for (const element of document.querySelectorAll("*")) {
    for (const name of ["href", "src", "xlink:href", "action", "srcset", "poster"]) {
      const value = element.getAttribute(name);
      if (value !== null && !/^(data:|#)/.test(value)) found.push(`elsewhere ${value}`);
    }
  }
  for (const style of document.querySelectorAll("style")) {
    if (/@import|url\((?!#)/.test(style.textContent)) found.push("elsewhere in a style");
  }
  for (const entry of performance.getEntriesByType("resource")) {
    if (!entry.name.startsWith("data:")) found.push(`requested ${entry.name}`);
  }

  for (const figure of document.querySelectorAll("figure.drawing")) {
    const drawings = [...figure.querySelectorAll("svg")].filter(
      (svg) => svg.getBoundingClientRect().height > 40);
    found.push(`figure ${figure.id} ${drawings.length}`);
    for (const svg of drawings) inspect(svg, figure.id, found);
  }
  for (const table of document.querySelectorAll("figure.table table")) {
    const { width, height } = table.getBoundingClientRect();
    const { id } = table.closest("figure");
    if (width > 40 && height > 40) found.push(`table ${id}`);
    inspectTable(table, id, found);
  }

  const json = document.getElementById("report-json");
  if (json) found.push(`json ${JSON.stringify(JSON.parse(json.textContent))}`);
  for (const link of document.querySelectorAll("header .tools a")) found.push(`save ${link.download}`);
  document.querySelector("button").click();
  found.push(`background-then ${background()}`);
  const csv = document.getElementById("report-csv").textContent;
  parent.postMessage({ probe: found.join("\n"), csv }, "*");
});

// Finds a table that is cut off. One that is wider than its frame may scroll there, if a hint says
// so and the last column comes out from under the first one, which stays.
function inspectTable(table, id, found) {
  const frame = table.parentElement;
  const hint = frame.nextElementSibling;
  const isHinted = hint !== null && hint.classList.contains("hint") && hint.offsetHeight > 8;
  for (const cell of table.querySelectorAll("th,td")) {
    if (cell.scrollWidth > cell.clientWidth + 1) found.push(`cut ${id}: ${cell.textContent}`);
  }
  if (frame.scrollWidth <= frame.clientWidth) {
    if (isHinted) found.push(`hint ${id}: nothing to scroll`);
    return;
  }
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(frame).overflowX);
  if (!scrolls || !isHinted) {
    found.push(`cut ${id}: the table`);
    return;
  }
  found.push(`scrolls ${id}`);
  frame.scrollLeft = frame.scrollWidth;
  const cells = [...table.rows[0].cells].map((cell) => cell.getBoundingClientRect());
  const last = cells[cells.length - 1];
  if (last.left < cells[0].right - 1 || last.right > frame.getBoundingClientRect().right + 1) {
    found.push(`cut ${id}: the last column`);
  }
  frame.scrollLeft = 0;
}

// Finds text that is cut off, is too small to read, or covers other text.
function inspect(svg, id, found) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map((element) => {
    const box = element.getBoundingClientRect();
    return { text: element.textContent, box };
  });
  const slack = 2;
  for (const { text, box } of texts) {
    if (box.height < 8) found.push(`small ${id}: ${text}`);
    if (box.left < frame.left - slack || box.right > frame.right + slack
      || box.top < frame.top - slack || box.bottom > frame.bottom + slack) {
      found.push(`cut ${id}: ${text}`);
    }
  }
  texts.forEach((one, number) => {
    for (const other of texts.slice(number + 1)) {
      const [a, b] = [one.box, other.box];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // A box is as high as the font's tallest letter, which digits are not.
      if (across > slack && down > 0.4 * Math.min(a.height, b.height)) {
        found.push(`overlap ${id}: ${one.text} | ${other.text}`);
      }
    }
  });
}
