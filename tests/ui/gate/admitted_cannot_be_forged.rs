use aster_runtime::call::Proposed;
use aster_runtime::gate::Admitted;

fn forge(call: Proposed) -> Admitted {
    Admitted { call, by: "whoever wrote this".to_owned() }
}

fn main() {}
