// SPDX-License-Identifier: BSD-2-Clause
//! A Rust program that uses libtickmark by its C functions: the same events as user.c makes, with a
//! guard that ends its operation when it is dropped, by a panic too.

use std::ffi::{c_char, c_int, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Config {
    size: usize,
    entrypoint: *const c_char,
    phase: c_int,
    profile: *const c_char,
    cargo_features: *const *const c_char,
    n_cargo_features: usize,
    analysis_id: *const c_char,
    build_id: *const c_char,
    strict: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Op {
    token: u64,
    slot: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Window {
    id: u64,
    opened_on: u64,
}

#[repr(C)]
struct WindowOptions {
    flush: c_int,
}

#[repr(C)]
struct Session {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Site {
    _opaque: [u8; 0],
}

extern "C" {
    fn tmk_enabled() -> c_int;
    fn tmk_config_init(config: *mut Config, size: usize, phase: c_int, entrypoint: *const c_char) -> c_int;
    fn tmk_session_open(out: *mut *mut Session, path: *const c_char, config: *const Config) -> c_int;
    fn tmk_session_set_step(s: *mut Session, step: u64);
    fn tmk_session_finish(s: *mut Session) -> c_int;
    fn tmk_last_error() -> *const c_char;
    fn tmk_site_intern(id: *const c_char, op: *const c_char, inputs: *const *const c_char, n: usize) -> *const Site;
    fn tmk_op_begin(s: *mut Session, site: *const Site) -> Op;
    fn tmk_op_begin_inputs(s: *mut Session, site: *const Site, inputs: *const *const c_char, n: usize) -> Op;
    fn tmk_op_end(s: *mut Session, op: Op, output: *const c_char) -> c_int;
    fn tmk_op_end_timed(s: *mut Session, op: Op, output: *const c_char, ns: *mut u64) -> c_int;
    fn tmk_stream_enter(number: u64) -> c_int;
    fn tmk_stream_leave();
    fn tmk_window_start(s: *mut Session, name: *const c_char, w: *mut Window) -> c_int;
    fn tmk_window_end(s: *mut Session, w: Window, options: *const WindowOptions) -> c_int;
    fn tmk_window_abandon(s: *mut Session, w: Window);
    fn tmk_edge_record(s: *mut Session, from: *const c_char, to: *const c_char, ns: u64) -> c_int;
}

const ENOENT: c_int = 2;
const PHASE_TRAIN: c_int = 0;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn site(id: &str, op: &str, inputs: &[&str]) -> *const Site {
    let owned: Vec<CString> = inputs.iter().map(|i| c(i)).collect();
    let pointers: Vec<*const c_char> = owned.iter().map(|i| i.as_ptr()).collect();
    unsafe { tmk_site_intern(c(id).as_ptr(), c(op).as_ptr(), pointers.as_ptr(), pointers.len()) }
}

struct Scope {
    session: *mut Session,
    op: Op,
}

impl Scope {
    fn new(session: *mut Session, site: *const Site) -> Self {
        Self { session, op: unsafe { tmk_op_begin(session, site) } }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        unsafe { tmk_op_end(self.session, self.op, null()) };
    }
}

fn events_make(s: *mut Session) {
    let numbers: Vec<String> = (1..=16).map(|n| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let plain = site("operation:train:M::f:2", "matmul", &[]);
    let inputs = [c("r1"), c("r2")];
    let inputs: Vec<*const c_char> = inputs.iter().map(|i| i.as_ptr()).collect();
    let mut ns = 0;
    unsafe {
        let op = tmk_op_begin(s, site("operation:train:M::f:1", "add", &numbers));
        assert_eq!(tmk_op_end(s, op, c("out").as_ptr()), 0);
        assert_eq!(tmk_op_end(s, op, c("out").as_ptr()), -ENOENT);
        assert_eq!(tmk_edge_record(s, c("tensor:a").as_ptr(), c("operation:b").as_ptr(), 7), 0);
        tmk_session_set_step(s, 1);
        std::panic::set_hook(Box::new(|_| {}));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _scope = Scope::new(s, plain);
            panic!("on purpose");
        }));
        let _ = std::panic::take_hook();
        assert!(caught.is_err());
        let op = tmk_op_begin_inputs(s, plain, inputs.as_ptr(), inputs.len());
        assert_eq!(tmk_op_end_timed(s, op, c("é").as_ptr(), &mut ns), 0);
        let _scope = Scope::new(s, site("operation:train:M::f:3", "relu", &["x"]));
    }
}

/// Gives up its window unless that was ended before.
struct Guard {
    session: *mut Session,
    window: Window,
}

impl Drop for Guard {
    fn drop(&mut self) {
        unsafe { tmk_window_abandon(self.session, self.window) };
    }
}

fn window(s: *mut Session, name: &str) -> Window {
    let mut w = Window { id: 0, opened_on: 0 };
    assert_eq!(unsafe { tmk_window_start(s, c(name).as_ptr(), &mut w) }, 0);
    assert_ne!(w.id, 0);
    w
}

/// Panics through functions of C, for compilers that can (1.71).
#[cfg(c_unwind)]
mod through_c {
    use super::{c, Session, Window, WindowOptions};
    use std::ffi::{c_char, c_int, c_void};
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::ptr::null_mut;

    #[repr(C)]
    struct Backend {
        size: usize,
        sync: Option<extern "C" fn(*mut c_void) -> c_int>,
        flush: Option<extern "C" fn(*mut c_void) -> c_int>,
        start: Option<extern "C" fn(*mut c_void, *mut u64) -> c_int>,
        end: Option<extern "C" fn(*mut c_void, u64, *const WindowOptions, *mut c_void) -> c_int>,
        abandon: Option<extern "C" fn(*mut c_void, u64)>,
    }

    #[repr(C)]
    struct Profile {
        session: *mut Session,
        name: *const c_char,
        backend: *const Backend,
        device: *mut c_void,
        options: WindowOptions,
    }

    type Body = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

    // What runs the program's own code: a panic goes through it.
    extern "C-unwind" {
        fn tmk_profile_with_tokens(
            p: *const Profile,
            body: Body,
            arg: *mut c_void,
            output: *mut *mut c_void,
            duration: *mut c_void,
            w: *mut Window,
        ) -> c_int;
    }

    extern "C" fn device_start(device: *mut c_void, handle: *mut u64) -> c_int {
        unsafe {
            *handle = 5;
            *device.cast::<u64>() = 0;
        }
        0
    }

    extern "C" fn device_abandon(device: *mut c_void, handle: u64) {
        unsafe { *device.cast::<u64>() = handle };
    }

    unsafe extern "C-unwind" fn body_panics(_: *mut c_void) -> *mut c_void {
        std::panic::panic_any(7u32)
    }

    /// A panic in a measured body abandons its window, and arrives here with its payload.
    pub fn unwinds(s: *mut Session) {
        let (name, mut device) = (c("unwound"), 1u64);
        let backend = Backend {
            size: std::mem::size_of::<Backend>(),
            sync: None,
            flush: None,
            start: Some(device_start),
            end: None,
            abandon: Some(device_abandon),
        };
        let profile = Profile {
            session: s,
            name: name.as_ptr(),
            backend: &backend,
            device: (&mut device as *mut u64).cast(),
            options: WindowOptions { flush: 0 },
        };
        let caught = catch_unwind(AssertUnwindSafe(|| unsafe {
            tmk_profile_with_tokens(&profile, body_panics, null_mut(), null_mut(), null_mut(), null_mut())
        }));
        assert_eq!(caught.unwrap_err().downcast_ref::<u32>(), Some(&7));
        assert_eq!(device, 5);
    }
}

#[cfg(not(c_unwind))]
mod through_c {
    pub fn unwinds(s: *mut super::Session) {
        unsafe { super::tmk_window_abandon(s, super::window(s, "unwound")) };
    }
}

fn windows_make(s: *mut Session) {
    let options = WindowOptions { flush: 1 };
    unsafe {
        assert_eq!(tmk_stream_enter(3), 0);
        let outer = window(s, "outer");
        tmk_stream_leave();
        assert_eq!(outer.opened_on, 3);
        std::panic::set_hook(Box::new(|_| {}));
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = Guard { session: s, window: window(s, "guarded") };
            panic!("on purpose");
        }));
        assert!(caught.is_err());
        assert_eq!(tmk_window_end(s, outer, &options), 0);
        assert_eq!(tmk_window_end(s, outer, &options), -ENOENT);
        through_c::unwinds(s);
        let _ = std::panic::take_hook();
    }
}

fn main() {
    let path = c(&std::env::args().nth(1).expect("usage: user FILE"));
    let entrypoint = c("M::f");
    let mut config = std::mem::MaybeUninit::<Config>::uninit();
    let mut s = null_mut();
    unsafe {
        assert_eq!(
            tmk_config_init(config.as_mut_ptr(), std::mem::size_of::<Config>(), PHASE_TRAIN, entrypoint.as_ptr()),
            0
        );
        let config = config.assume_init();
        assert_eq!(CStr::from_ptr(config.profile).to_str(), Ok("release"));
        assert!(config.analysis_id.is_null() && config.build_id.is_null() && config.cargo_features.is_null());
        assert_eq!((config.size, config.n_cargo_features, config.strict), (72, 0, 0));
        assert_eq!((config.entrypoint, config.phase), (entrypoint.as_ptr(), PHASE_TRAIN));
        assert_eq!(tmk_enabled(), 0);
        let err = tmk_session_open(&mut s, path.as_ptr(), &config);
        assert_eq!(err, 0, "{:?}", CStr::from_ptr(tmk_last_error()));
        assert_eq!(tmk_enabled(), 1);
        events_make(s);
        windows_make(s);
        assert_eq!(tmk_session_finish(s), 0);
        assert_eq!(tmk_enabled(), 0);
    }
    println!("ok");
}
