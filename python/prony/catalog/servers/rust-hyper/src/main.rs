//! Answers like the app `hello`: `hello-server HOST PORT WORKERS BACKLOG KEEP_ALIVE`.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};

const GREETING: &[u8] = b"Hello, world!\n";

/// What to do after a failed accept: without a pause, a full table of descriptors would keep a CPU busy.
const PAUSE: Duration = Duration::from_millis(10);

struct Options {
    address: SocketAddr,
    workers: usize,
    backlog: u32,
    keep_alive: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options(&std::env::args().skip(1).collect::<Vec<_>>())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.workers)
        .enable_all()
        .build()?;
    runtime.block_on(serve(options))
}

fn options(arguments: &[String]) -> Result<Options, Box<dyn Error>> {
    match arguments {
        [host, port, workers, backlog, keep_alive] => Ok(Options {
            address: SocketAddr::new(host.parse()?, port.parse()?),
            workers: workers.parse()?,
            backlog: backlog.parse()?,
            keep_alive: keep_alive.parse()?,
        }),
        _ => Err("expected HOST PORT WORKERS BACKLOG KEEP_ALIVE".into()),
    }
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let listener = listen(&options)?;
    let mut protocol = http1::Builder::new();
    protocol.keep_alive(options.keep_alive);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = protocol.serve_connection(TokioIo::new(stream), service_fn(answer));
                // An error here is a connection that its client broke off.
                tokio::spawn(async move { connection.await.unwrap_or_default() });
            }
            Err(error) => {
                eprintln!("accept: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn listen(options: &Options) -> std::io::Result<TcpListener> {
    let socket = if options.address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(options.address)?;
    socket.listen(options.backlog)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = if request.uri().path() == "/" {
        (StatusCode::OK, GREETING)
    } else {
        (StatusCode::NOT_FOUND, &b"not found\n"[..])
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}
