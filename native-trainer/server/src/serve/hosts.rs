//! The names under which a server answers.
//!
//! Any site can let its own name point to this machine after its page has loaded (DNS rebinding). The browser then takes
//! what `akin serve` answers for that site's own files, and lets its scripts read a private gallery. Such a request still
//! names the site in its header `Host`, so only requests for known names are answered.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::str::FromStr;

use akin_base::problem::problem;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};

/// A value of `--host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address of this machine to listen on. The unspecified address (`0.0.0.0`, `::`) stands for all.
    Address(IpAddr),
    /// A name in lower case.
    Name(String),
}

impl Host {
    /// Reads the host of an address bar: a name, an IPv4 address, or an IPv6 address in brackets.
    fn from_authority(authority: &str) -> Option<Self> {
        // User names, which could look like a host, are in no header that a browser sends.
        if authority.contains('@') {
            return None;
        }
        let authority: Authority = authority.parse().ok()?;
        // `8080:` and the like: the rest of the text would be lost.
        if authority.as_str().len() != authority.host().len() && authority.port().is_none() {
            return None;
        }
        authority.host().parse().ok()
    }

    /// Whether only this machine can mean this host: browsers never ask a name server for `localhost`.
    fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.to_canonical().is_loopback(),
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

impl FromStr for Host {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        Ok(match bare.parse() {
            Ok(address) => Self::Address(address),
            // A name may end with the dot of the root zone.
            Err(_) => Self::Name(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()),
        })
    }
}

/// Whether a machine can have this name. Browsers read a name that ends in a number as an address.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = match last.strip_prefix("0x") {
        Some(digits) => digits.chars().all(|c| c.is_ascii_hexdigit()),
        None => last.chars().all(|c| c.is_ascii_digit()),
    };
    name.split('.').all(is_label) && !is_number
}

/// The names under which a server answers: those of this machine alone, and those of `--host`.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    given: Vec<Host>,
}

impl Hosts {
    /// # Errors
    ///
    /// More than one address; a name that no machine can have; a name without a dot that this machine does not know.
    pub fn new(given: Vec<Host>) -> anyhow::Result<Self> {
        Self::with_names(given, |name| (name, 0).to_socket_addrs().is_ok())
    }

    /// As [`Hosts::new`]. `is_known` says whether this machine knows a name without a dot.
    fn with_names(given: Vec<Host>, is_known: impl Fn(&str) -> bool) -> anyhow::Result<Self> {
        let addresses = given.iter().filter(|host| matches!(host, Host::Address(_))).count();
        if addresses > 1 {
            return Err(problem(
                format!("`--host` names {addresses} addresses, but a server listens on one"),
                "give one of them, or `--host 0.0.0.0` for all addresses of this machine",
            ));
        }
        for host in &given {
            let Host::Name(name) = host else { continue };
            if !is_name(name) {
                return Err(problem(
                    format!("`--host {name}` is neither a name nor an address"),
                    "write it without `http://` and without a port, for example `--host akin.example.org`",
                ));
            }
            // The name of a machine in the same network.
            if !name.contains('.') && !is_known(name) {
                return Err(problem(
                    format!(
                        "`--host {name}` is neither an address nor the name of a machine that this one knows"
                    ),
                    "write an address, or a whole name, for example `--host akin.example.org`",
                ));
            }
        }
        Ok(Self { given })
    }

    /// The address to listen on.
    pub fn address(&self) -> IpAddr {
        let given = self.given.iter().find_map(|host| match host {
            Host::Address(address) => Some(*address),
            Host::Name(_) => None,
        });
        given.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    /// Checks the headers `Host` and `Origin` of a request.
    ///
    /// # Errors
    ///
    /// The status of the refusal, and a text that says why and what to do.
    pub fn check(&self, address: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let asked: Vec<String> = headers.get_all(HOST).iter().map(text).collect();
        let in_address = address.authority().map(|authority| authority.as_str().to_owned());
        // A request without the header is of no browser. One with two could mean either.
        let hosts_are_known = asked.len() == 1
            && asked.iter().chain(&in_address).all(|authority| self.knows(Host::from_authority(authority)));
        if !hosts_are_known {
            let asked = asked.join(", ");
            let advice = match Host::from_authority(&asked) {
                Some(Host::Name(name)) => format!("start it with `--host {name}`"),
                Some(Host::Address(address)) => format!("start it with `--host {address}`"),
                None => "open the address that it has printed".to_owned(),
            };
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "akin serve does not answer under the name \"{asked}\", so that no other site can read a gallery \
                     of this machine.\nOpen the address that it has printed. To serve it under this name, {advice}.\n"
                ),
            ));
        }
        let Some(origin) = headers.get(ORIGIN).map(text) else { return Ok(()) };
        // `null` is the origin of files and of pages in a sandbox.
        let host = origin.parse::<Uri>().ok().and_then(|origin| {
            Host::from_authority(
                origin.authority().map(Authority::as_str).filter(|_| origin.scheme().is_some())?,
            )
        });
        if self.knows(host) {
            return Ok(());
        }
        Err((
            StatusCode::FORBIDDEN,
            format!(
                "A page of \"{origin}\" asked for this file, and akin serve answers only its own page.\n\
                 To use the page elsewhere, write it with `akin export --site` and put that folder on the same server.\n"
            ),
        ))
    }

    fn knows(&self, host: Option<Host>) -> bool {
        let Some(host) = host else { return false };
        let all_addresses = self
            .given
            .iter()
            .any(|given| matches!(given, Host::Address(address) if address.is_unspecified()));
        // A name server cannot give an address another meaning.
        let is_address = matches!(host, Host::Address(_));
        host.is_loopback() || self.given.contains(&host) || (is_address && all_addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(given: &[&str]) -> Hosts {
        Hosts::new(given.iter().map(|host| host.parse().unwrap()).collect()).unwrap()
    }

    fn status(hosts: &Hosts, address: &str, pairs: &[(&'static str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        hosts.check(&address.parse().unwrap(), &headers).err().map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let hosts = hosts(&[]);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "a.localhost:1",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
        ] {
            assert_eq!(status(&hosts, "/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example.com",
            "evil.example.com:8080",
            "localhost.evil.example.com",
            "evillocalhost",
            "127.0.0.1.nip.io",
            "192.168.1.5:8080",
            "0.0.0.0:8080",
            "localhost@evil.example.com",
            "evil.example.com#localhost",
            "[::2]",
            "",
            "localhost:evil",
        ] {
            assert_eq!(status(&hosts, "/", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&hosts, "/", &[]), 421, "without the header");
        assert_eq!(status(&hosts, "/", &[("host", "localhost"), ("host", "evil.example.com")]), 421);
        assert_eq!(status(&hosts, "http://evil.example.com/", &[("host", "localhost")]), 421);
        assert_eq!(status(&hosts, "http://localhost:8080/", &[("host", "localhost:8080")]), 200);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let hosts = hosts(&[]);
        let origin = |origin| status(&hosts, "/", &[("host", "localhost:8080"), ("origin", origin)]);
        assert_eq!(origin("http://localhost:8080"), 200);
        for other in
            ["https://evil.example.com", "null", "http://localhost@evil.example.com", "localhost", "file://"]
        {
            assert_eq!(origin(other), 403, "{other}");
        }
    }

    #[test]
    fn the_option_adds_names_and_an_address() {
        let named = hosts(&["Akin.Example.org"]);
        assert_eq!(status(&named, "/", &[("host", "akin.example.org")]), 200);
        assert_eq!(
            status(&named, "/", &[("host", "akin.example.org"), ("origin", "https://akin.example.org")]),
            200
        );
        assert_eq!(status(&named, "/", &[("host", "other.example.org")]), 421);
        assert_eq!(named.address(), IpAddr::from(Ipv4Addr::LOCALHOST));

        let network = hosts(&["192.168.1.5"]);
        assert_eq!(network.address().to_string(), "192.168.1.5");
        assert_eq!(status(&network, "/", &[("host", "192.168.1.5:8080")]), 200);
        assert_eq!(status(&network, "/", &[("host", "192.168.1.6:8080")]), 421);

        let all = hosts(&["0.0.0.0", "lab.local"]);
        assert_eq!(status(&all, "/", &[("host", "192.168.1.6")]), 200);
        assert_eq!(status(&all, "/", &[("host", "lab.local")]), 200);
        assert_eq!(
            status(&all, "/", &[("host", "evil.example.com")]),
            421,
            "all addresses are not all names"
        );
    }

    #[test]
    fn a_value_that_is_no_host_is_refused() {
        let refusal = |given: &[&str]| {
            Hosts::new(given.iter().map(|host| host.parse().unwrap()).collect()).unwrap_err().to_string()
        };
        assert!(refusal(&["http://a"]).contains("neither a name nor an address"));
        assert!(refusal(&["lab:80"]).contains("neither a name nor an address"));
        assert!(refusal(&["1.2.3.4", "::1"]).contains("2 addresses"));
        for other in ["0.0.0.0.0", "1.2.3", "256.1.1.1", "a..b", "-a.org", "lab.0x7f", ""] {
            assert!(refusal(&[other]).contains("neither a name nor an address"), "{other}");
        }
    }

    #[test]
    fn a_name_without_a_dot_is_one_that_this_machine_knows() {
        let hosts = |name: &str| Hosts::with_names(vec![name.parse().unwrap()], |name| name == "workstation");
        assert_eq!(hosts("Workstation").unwrap().given, [Host::Name("workstation".into())]);
        assert!(hosts("NaN").unwrap_err().to_string().contains("nor the name of a machine"));
        hosts("akin.example.org").unwrap();
    }
}
