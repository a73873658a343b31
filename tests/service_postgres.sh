#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The store on PostgreSQL, in a cluster of its own that is gone afterwards: the contract that SQLite
# keeps, daemons killed at random, and two replicas that share the work. Skipped without PostgreSQL.
for bin in /usr/lib/postgresql/*/bin; do :; done
[ -x "$bin/initdb" ] || { echo "PostgreSQL is not here"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not here"; exit 77; }
grep -q 'define HAVE_LIBPQ' "$builddir/config.h" || { echo "built without libpq"; exit 77; }
as=()
if [ "$(id -u)" = 0 ]; then # PostgreSQL does not run as root
  id postgres >/dev/null 2>&1 && command -v setpriv >/dev/null || { echo "no user for PostgreSQL"; exit 77; }
  as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
work=$(mktemp -d /tmp/ferry-pg-XXXXXX)
stop() {
  (cd / && "${as[@]}" "$bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1)
  rm -rf "$work"
}
trap stop EXIT
chmod 755 "$work"
mkdir "$work/data" "$work/socket" && chmod 777 "$work/socket"
[ "$(id -u)" != 0 ] || chown postgres "$work/data"
chmod 700 "$work/data"
cd / && "${as[@]}" "$bin/initdb" -D "$work/data" -U ferry -A trust --no-sync >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log"; exit 1; }
"${as[@]}" "$bin/pg_ctl" -D "$work/data" -w -l "$work/data/log" -o "-c listen_addresses='' -c unix_socket_directories=$work/socket" start >/dev/null || { cat "$work/data/log"; exit 1; }
# kill -9 of the whole of it, and up again; its remains may hold its memory for a moment.
cat >"$work/crash" <<END
#!/bin/bash
kill -9 \$(head -n 1 "$work/data/postmaster.pid")
for _ in \$(seq 100); do
  (cd / && ${as[@]} "$bin/pg_ctl" -D "$work/data" -w -l "$work/data/log" -o "-c listen_addresses='' -c unix_socket_directories=$work/socket" start) && exit 0
  sleep 0.1
done
exit 1
END
chmod 755 "$work/crash"
connection="host=$work/socket user=ferry dbname=postgres"
schemas=$(for i in {0..17} kill two; do echo "create schema t$i;"; done)
"$bin/psql" -q "$connection" -c "$schemas" >/dev/null || exit 1

rounds=6 jobs=60
[ -z "${FERRY_SOAK:-}" ] || rounds=200 jobs=1000
status=0
FERRY_POSTGRES=$connection "$builddir/tests/test_store" || status=1
FERRY_CRASH=$work/crash python3 "$srcdir/tests/service/kill.py" $rounds 2 "postgres:$connection options='-csearch_path=tkill'" || status=1
python3 "$srcdir/tests/service/replicas.py" $jobs "postgres:$connection options='-csearch_path=ttwo'" || status=1
exit $status
