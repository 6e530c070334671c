//! Calls with streams.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use crate::devices::common::{COUNT, Ends, REPEAT, SUM, Stage};

pub async fn a_method_that_answers_with_a_stream_is_called_over_a_channel(ends: Ends) {
    let server = ends.open(Stage::default().server()).await;
    let client = ends.client(&server).await;
    let counted = client.server_streaming(COUNT, 3000).await.expect("it streams").into_inner();
    let numbers: Vec<u64> = counted.map(|number| number.expect("a number")).collect().await;
    assert!(numbers.into_iter().eq(0..3000));
}

pub async fn a_method_that_takes_a_stream_is_called_over_a_channel(ends: Ends) {
    let server = ends.open(Stage::default().server()).await;
    let client = ends.client(&server).await;
    let sum = client.client_streaming(SUM, stream::iter(0..3000_u64)).await.expect("it sums");
    assert_eq!(sum.into_inner(), 4_498_500);
}

pub async fn both_stream_at_once(ends: Ends) {
    let server = ends.open(Stage::default().server()).await;
    let client = ends.client(&server).await;
    let (sends, sent) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let pieces = stream::unfold(sent, async |mut sent| Some((sent.recv().await?, sent)));
    let response = client.streaming(REPEAT, pieces.boxed()).await.expect("it streams");
    let mut repeated = response.into_inner();
    for len in [0, 1, 4096, 100_000, 7] {
        // Each waits for the piece before to come back.
        let piece = Bytes::from(vec![len as u8; len]);
        sends.send(piece.clone()).expect("it is taken");
        let came = repeated.message().await.expect("it goes on").expect("a piece");
        assert!(came == piece, "{len} bytes");
    }
    drop(sends);
    assert_eq!(repeated.message().await.expect("it ends well"), None);
}
