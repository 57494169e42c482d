#!/bin/sh
# Install Fleet for a machine that watches others: the program, its home, a check of all hosts every 15 minutes.
#
#   sudo sh scripts/install.sh [--prefix DIR] [--bin-dir DIR] [--no-service] [SERVICE OPTIONS]
#   sudo sh scripts/install.sh --uninstall [--prefix DIR] [--bin-dir DIR] [--root DIR]
#
#   --prefix DIR   where it lives, with an environment of its own (default: /opt/fleet-manager)
#   --bin-dir DIR  where the word `fleet` is put (default: /usr/local/bin)
#   --no-service   leave systemd and cron alone
#   --uninstall    take it all away again, save the home with its settings, queue and secrets
#
# All other options go to `fleet service install`: --health-every, --supervisor, --by, --token-file, --root and more.
# The token of the sprites is asked for, and not shown. A config.yaml in DIR, and a names.txt, are imported once.
# Run it again to bring a newer tree into DIR: what has not changed stays. This tree is not needed afterwards.
set -eu

say() { printf '%s\n' "$*" >&2; }
die() {
    say "scripts/install.sh: $*"
    exit 1
}
usage() { sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"; }
value() { [ $# -gt 1 ] && [ -n "$2" ] || die "$1 needs a directory"; }

tree=$(cd "$(dirname "$0")/.." && pwd -P)
prefix=/opt/fleet-manager
words=/usr/local/bin
service=yes
uninstall=no
root=
count=$#
while [ "$count" -gt 0 ]; do
    count=$((count - 1))
    case $1 in
        --prefix | --bin-dir | --root)
            value "$@"
            [ "$count" -gt 0 ] || die "$1 needs a directory"
            case $1 in
                --prefix) prefix=$2 ;;
                --bin-dir) words=$2 ;;
                --root) root=$2 ;;
            esac
            count=$((count - 1))
            shift
            ;;
        --prefix=?*) prefix=${1#--prefix=} ;;
        --bin-dir=?*) words=${1#--bin-dir=} ;;
        --root=?*) root=${1#--root=} ;;
        --no-service) service=no ;;
        --uninstall) uninstall=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        # These are for `fleet service install`, behind those that are still to be read. What it does not know is refused
        # before anything is installed.
        --no-health | --supervisor | --user | --system | --json) set -- "$@" "$1" ;;
        --health-every=* | --pool-check=* | --by=* | --health-log=* | --token-file=*) set -- "$@" "$1" ;;
        --health-every | --pool-check | --by | --health-log | --token-file)
            [ "$count" -gt 0 ] || die "$1 needs a value"
            set -- "$@" "$1" "$2"
            count=$((count - 1))
            shift
            ;;
        *) die "unknown option $1; see: sh scripts/install.sh --help" ;;
    esac
    shift
done
[ -z "$root" ] || set -- "$@" --root "$root"

absolute() {
    case $1 in
        *[!A-Za-z0-9_./@+-]*) die "$1 has characters that a path of programs should not have" ;;
        /*) printf '%s' "${1%/}" ;;
        *) printf '%s/%s' "$(pwd -P)" "${1%/}" ;;
    esac
}
prefix=$(absolute "$prefix")
words=$(absolute "$words")
[ -n "$prefix" ] || die "--prefix needs a directory of its own"
home=$prefix/home
word=$words/fleet
mark="# Made by scripts/install.sh for $prefix"
ours() { [ -f "$word" ] && grep -qxF -e "$mark" "$word"; }
fleet() { FLEET_HOME=$home "$prefix/venv/bin/fleet" "$@"; }

if [ $uninstall = yes ]; then
    [ -e "$prefix/venv" ] || ours || die "nothing is installed in $prefix"
    if [ -f "$home/service.json" ] || [ -n "$root" ]; then
        fleet service uninstall ${root:+--root "$root"} || [ $? -eq 4 ] || die "the service could not be taken away (above)"
    fi
    if ours; then rm "$word" && say "removed $word"; fi
    # Only what scripts/install made has its stamp.
    if [ -f "$prefix/venv/.fleet-install" ]; then rm -rf "$prefix/venv" && say "removed $prefix/venv"; fi
    if [ -d "$home" ]; then say "kept    $home"; else rmdir "$prefix" 2>/dev/null || say "kept    $prefix"; fi
    exit 0
fi

if [ -e "$word" ] && ! ours; then
    die "$word is there already, and is not of this installation; move it away, or choose another place with --bin-dir"
fi
mkdir -p "$prefix" "$words" || die "run it as root (sudo), or choose another --prefix and --bin-dir"
sh "$tree/scripts/install" --copy --venv "$prefix/venv" >&2 || exit 1

known=no
if [ -f "$home/fleet.toml" ]; then known=yes; fi
fleet init >&2
if [ $known = no ] && [ -f "$prefix/config.yaml" ]; then
    if [ -f "$prefix/names.txt" ]; then
        fleet config import "$prefix/config.yaml" --names "$prefix/names.txt" >&2
    else
        fleet config import "$prefix/config.yaml" >&2
    fi
fi

# Written beside it and renamed: whoever runs `fleet` meanwhile has the old one or the new one.
cat >"$word.new" <<END
#!/bin/sh
$mark
# It has one home, for those who may write to it; everybody else has their own.
if [ -z "\${FLEET_HOME:-}" ] && [ -w $home ]; then
    FLEET_HOME=$home
    export FLEET_HOME
fi
exec $prefix/venv/bin/fleet "\$@"
END
chmod 755 "$word.new"
mv "$word.new" "$word"
say "installed: $word, with its home in $home"

[ $service = no ] || fleet service install --bin-dir "$prefix" "$@"
