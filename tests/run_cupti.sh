#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `ferry profile` with CUPTI's records for times, and its audit, on the emulated device: libfake_cupti.so
# stands where the toolkit's library would.
. "$(dirname "$0")/run.bash"
fake=$builddir/tests/fake_cupti.so
[ -e "$fake" ] || { echo "$fake is not made; \`make programs\` makes it"; exit 1; }

profile() { # NAME OPTIONS...: of one program; NAME.json, NAME.out, NAME.err
  local name=$1
  shift
  "$ferry" profile --driver emulated "$@" -o "$name.json" -- "$programs/mlp" "$kernels" 10 >"$name.out" 2>"$name.err"
}
plain mlp "$programs/mlp" "$kernels" 10

alike() { # both are exact on the emulated device's clock, so both say the same of every op
  profile pairs && profile records --cupti "$fake" || { cat pairs.err records.err; return 1; }
  cmp mlp.plain records.out && grep -q '"detail": "CUPTI activity records"' records.json &&
    diff <(grep -v '"detail"' pairs.json) <(grep -v '"detail"' records.json)
}
nested() {
  FAKE_CUPTI=runtime profile nested --cupti "$fake" && diff <(grep -v '"detail"' pairs.json) <(grep -v '"detail"' nested.json)
}
many() { # buffers are handed over during the run too
  plain long "$programs/mlp" "$kernels" 130
  "$ferry" profile -q --driver emulated --cupti "$fake" -o long.json -- "$programs/mlp" "$kernels" 130 >long.out && cmp long.plain long.out &&
    diff <(sed -n '/"ops"/,$p' pairs.json | grep -v '"detail"') <(sed -n '/"ops"/,$p' long.json | grep -v '"detail"')
}
audited() {
  profile audit --audit --cupti "$fake" && cmp mlp.plain audit.out || { cat audit.err; return 1; }
  grep -q 'the audit counted [1-9][0-9]* launches, as ferry did, and no call that ferry did not see' audit.err && [ -s audit.json ] || { cat audit.err; return 1; }
}
fails() { # HOW STATUS WHAT OPTIONS...: no trace, and one line
  local status=0
  FAKE_CUPTI=$1 profile "$1" "${@:4}" || status=$?
  [ "$status" = "$2" ] && grep -q "$3" "$1.err" && [ ! -e "$1.json" ] || { echo "status $status"; cat "$1.err"; return 1; }
}
instead() { # HOW LIBRARY WHAT: event pairs, and a line says so
  FAKE_CUPTI=$1 profile "$1" --cupti "$2" && grep -q "CUPTI cannot be used: $3" "$1.err" || { cat "$1.err"; return 1; }
  cmp pairs.json "$1.json"
}

claim "records of CUPTI give the times that event pairs give" alike
claim "also of launches from within the runtime" nested
claim "however many they are" many
claim "an audit counts as many launches as ferry" audited
claim "a call past ferry is found" fails escape 1 'did not see: 1, the first of them cuMemAlloc_v2' --audit --cupti "$fake"
claim "so is a launch that only one of both has seen" fails lose 1 'the audit counted [0-9]* launches, and ferry [0-9]*' --audit --cupti "$fake"
claim "where another profiler has the callbacks there is no audit" fails taken 69 'another profiler in the program has it' --audit --cupti "$fake"
claim "nothing is written where it tells no op's time" fails untimed 1 'CUPTI told the times of 0 of [0-9]* ops' --cupti "$fake"
claim "nor without CUPTI" fails none 2 'needs CUPTI; --cupti names its library' --audit
claim "where it records nothing, event pairs do" instead silent "$fake" 'it records nothing here'
claim "also where it is not there" instead away ./nowhere.so 'it is not there'
claim "and where it is another library" instead odd "$FERRY_EMU" 'its version lacks what is needed'
finish
