//! Sums of powers for the sigmoid: f(x) = x / (1 + x) and its slope x / (1 + x)² as polynomials without a constant term.
//!
//! σ(−|t|/τ) = f(x) and σ′ = f′ with x = e^{−|t|/τ} in 0 … 1. The only pole is at x = −1. Let T be the Chebyshev
//! polynomial of degree M on 0 … 1 and R = T / T(−1). Then R(−1) = 1, so 1 − R has the root −1, and
//!
//! ```text
//! f(x) ≈ x · (1 − R(x)) / (1 + x),      relative error R(x),      |R| ≤ 1 / |T(−1)|
//! ```
//!
//! is a polynomial of M terms whose largest *relative* error is the least possible. A sum of sigmoids with weights of one
//! sign has the same bound, for any number of sigmoids and any temperature: about 2 · 5.83^−M. For the slope, R = α T_M + β T_{M+1} with R(−1) = 1 and R′(−1) = 0 gives the double root.
//! The coefficients are at most 1 in size, and those of the slope at most 16, so cancellation costs no digits.

/// Both polynomials, M terms each, for x in 0 … 1: coefficient m − 1 belongs to x^m.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series<const M: usize> {
    /// Of x / (1 + x).
    pub value: [f64; M],
    /// Of x / (1 + x)².
    pub slope: [f64; M],
}

impl<const M: usize> Series<M> {
    pub(super) fn new() -> Self {
        // The pole x = −1 as an argument 2x − 1 of the Chebyshev polynomials.
        const POLE: f64 = -3.0;
        let (chebyshev, next) = (shifted_chebyshev(M), shifted_chebyshev(M + 1));
        let [at_pole, next_at_pole] = [M, M + 1].map(|degree| chebyshev_at(degree, POLE));

        let mut residual = vec![0.0; M + 2];
        residual.iter_mut().zip(&chebyshev).for_each(|(r, c)| *r = c / at_pole);
        let value = terms(&divide(one_minus(&residual)));

        let [growth, next_growth] = [M, M + 1].map(|degree| logarithmic_slope(degree, POLE));
        let (alpha, beta) = (next_growth / (next_growth - growth), -growth / (next_growth - growth));
        residual.iter_mut().for_each(|r| *r = 0.0);
        residual.iter_mut().zip(&chebyshev).for_each(|(r, c)| *r += alpha * c / at_pole);
        residual.iter_mut().zip(&next).for_each(|(r, c)| *r += beta * c / next_at_pole);
        let slope = terms(&divide(divide(one_minus(&residual))));
        Self { value, slope }
    }
}

/// Coefficients of T_n(2z − 1), lowest first. They are integers, exact up to n = 19.
fn shifted_chebyshev(degree: usize) -> Vec<f64> {
    let (mut last, mut this) = (vec![1.0], vec![-1.0, 2.0]);
    if degree == 0 {
        return last;
    }
    for _ in 1..degree {
        let mut next = vec![0.0; this.len() + 1];
        for (power, coefficient) in this.iter().enumerate() {
            next[power + 1] += 4.0 * coefficient;
            next[power] -= 2.0 * coefficient;
        }
        next.iter_mut().zip(&last).for_each(|(n, l)| *n -= l);
        (last, this) = (this, next);
    }
    this
}

/// T_n(y) for y ≤ −1.
fn chebyshev_at(degree: usize, y: f64) -> f64 {
    let sign = if degree.is_multiple_of(2) { 1.0 } else { -1.0 };
    sign * (degree as f64 * (-y).acosh()).cosh()
}

/// T_n′(y) / T_n(y) for y < −1.
fn logarithmic_slope(degree: usize, y: f64) -> f64 {
    let angle = (-y).acosh();
    -(degree as f64) * (degree as f64 * angle).tanh() / angle.sinh()
}

fn one_minus(polynomial: &[f64]) -> Vec<f64> {
    let mut result: Vec<f64> = polynomial.iter().map(|coefficient| -coefficient).collect();
    result[0] += 1.0;
    result
}

/// The quotient of a polynomial in x by 1 + x, which divides it.
fn divide(mut polynomial: Vec<f64>) -> Vec<f64> {
    for power in 1..polynomial.len() {
        polynomial[power] -= polynomial[power - 1];
    }
    polynomial.pop();
    polynomial
}

/// The coefficients of x · q(x) by powers of x, from x on.
fn terms<const M: usize>(quotient: &[f64]) -> [f64; M] {
    std::array::from_fn(|power| quotient[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x, x², … x^M.
    fn powers<const M: usize>(x: f64) -> [f64; M] {
        std::array::from_fn(|power| x.powi(power as i32 + 1))
    }

    /// The largest relative errors of value and slope.
    fn errors<const M: usize>() -> [f64; 2] {
        let series = Series::<M>::new();
        let mut worst = [0_f64; 2];
        for x in (1..=4000).map(|i| f64::from(i) / 4000.0) {
            let powers = powers::<M>(x);
            let sum = |terms: &[f64; M]| terms.iter().zip(powers).map(|(c, p)| c * p).sum::<f64>();
            worst[0] = worst[0].max((sum(&series.value) * (1.0 + x) / x - 1.0).abs());
            worst[1] = worst[1].max((sum(&series.slope) * (1.0 + x) * (1.0 + x) / x - 1.0).abs());
        }
        worst
    }

    #[test]
    fn each_term_divides_the_error_by_about_six() {
        let assert_stated = |[value, slope]: [f64; 2], terms: i32| {
            let stated = 2.0 * (3.0 + 8_f64.sqrt()).powi(-terms);
            let rounding = 1e-13;
            // The bound is reached, so a larger error would not go unseen.
            assert!(
                (value - stated).abs() <= 0.01 * stated + rounding,
                "{terms} terms: {value:e} {stated:e}"
            );
            assert!(slope <= 23.0 * stated + rounding, "{terms} terms: {slope:e} {stated:e}");
        };
        assert_stated(errors::<8>(), 8);
        assert_stated(errors::<12>(), 12);
        assert_stated(errors::<16>(), 16);
        assert!(errors::<16>()[1] < 2.5e-11);
    }

    #[test]
    fn no_digits_are_lost_to_cancellation() {
        let series = Series::<16>::new();
        assert!(series.value.iter().all(|c| c.abs() <= 1.0), "{:?}", series.value);
        assert!(series.slope.iter().all(|c| c.abs() <= 16.0), "{:?}", series.slope);
    }
}
