use doorbell::splitc::{self, *};

#[test]
fn histogram() {
    for carrier in [None, Some(Carrier::OneSided), Some(Carrier::Messages), Some(Carrier::Mixed)] {
        let mut config = Config::default();
        config.carrier = carrier;
        let n = Job::threads(2)
            .config(config)
            .run(async |world| {
                let table = world.spread::<u64>(1 << 10).await?;
                for key in 0..10_000usize {
                    table.at((key * 7919 + world.rank()) % 1024).store_add(1)?;
                }
                world.all_store_sync().await?;
                let mine: u64 = table.private().await?.iter().sum();
                table.share().await?;
                let got = table.at(5).read().await?;
                table.at(6).get()?;
                let g: Vec<_> = (0..100).map(|i| table.at(i).get()).collect::<Result<_, _>>()?;
                world.sync().await?;
                for (i, g) in g.into_iter().enumerate() {
                    assert_eq!(g.value()?, table.at(i).read().await?);
                }
                world.barrier().await?;
                assert!(got > 0);
                table.at(world.rank()).put(7)?.done().await?;
                table.at(world.rank() + 2).write(9).await?;
                world.barrier().await?;
                assert_eq!(table.gather(&[0, 1, 2, 3])?.done().await?, [7, 7, 9, 9]);
                world.barrier().await?;
                Ok(world.all_reduce(mine, u64::wrapping_add).await?)
            })
            .unwrap();
        assert_eq!(n, 20_000);
    }
}
