//! tmp
use serde_json::Value;
#[path = "golden/losses.rs"]
mod losses;
pub struct Comparison(pub String, pub f64, pub f64);
fn flat(v:&Value,out:&mut Vec<f64>){ match v { Value::Array(a)=>a.iter().for_each(|v|flat(v,out)), v=>out.push(v.as_f64().unwrap_or(f64::NAN)) } }
impl Comparison { pub fn new(name:&str, want:&Value, got:Vec<f64>, tol:f64)->Self{ let mut w=vec![]; flat(want,&mut w); assert_eq!(w.len(),got.len()); let scale=w.iter().fold(0f64,|a,b|a.max(b.abs())); let err=w.iter().zip(&got).fold(0f64,|a,(x,y)|a.max((x-y).abs()))/scale.max(1e-12); Comparison(name.into(),err,tol)} }
#[test]
fn all(){ for f in ["happier_hap_surrogate","happier_cluster_loss","happier_total","norm_softmax"] { let v:Value=serde_json::from_slice(&std::fs::read(format!("/work/shared/golden/{f}.json")).unwrap()).unwrap(); for c in v["cases"].as_array().unwrap(){ for k in losses::compare(f,c).unwrap(){ println!("{} {} {} {:e} {}", f, c["case"], k.0,k.1, if k.1<k.2 {"ok"} else {"BAD"}); } } } }
