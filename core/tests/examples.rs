//! Each example prints what its first comment promises.

#[path = "../examples/train_a_loss.rs"]
#[allow(dead_code, reason = "the test calls what `main` prints")]
mod train_a_loss;

#[test]
fn training_a_loss_raises_h_ap() {
    let [before, after] = train_a_loss::train().unwrap();
    assert!(before < 0.5 && after > 0.99, "from {before} to {after}");
}
