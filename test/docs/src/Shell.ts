/**
 * The shell blocks of a page as one script, and the stand-ins with which a test follows it: the page's words are kept, but for
 * places and keys that are nobody's. It judges nothing.
 */
import { type Block, blocksOf, readText } from "./Pages.ts"

/** What a block says when it cannot be followed on a machine for tests, by the page and the first words of the block. */
export const notFollowed: ReadonlyArray<{ readonly page: string; readonly begins: string; readonly because: string }> = [
  { page: "CONTRIBUTING.md", begins: "npm test", because: "it is this run" },
  { page: "CONTRIBUTING.md", begins: "export PATH", because: "it is this run, in parts" },
  { page: "README.md", begins: "npm start", because: "it is this run, and the demo, which has a test" },
  ...[
    "README.md", "apps/console/README.md", "apps/spend-cap-proxy/README.md", "packages/core/README.md", "packages/engine/README.md", "packages/postgres/README.md",
    "packages/purser/README.md", "packages/stripe-sim/README.md", "packages/stripe/README.md", "packages/testkit/README.md", "packages/transport-zeromq/README.md"
  ].map((page) => ({ page, begins: "npm install", because: "no registry has the packages yet; test/packaging installs them as archives" })),
  { page: "docs/benchmarks/README.md", begins: "pnpm bench", because: "it measures for minutes, on a machine that does nothing else" },
  { page: "docs/operations.md", begins: "pg_dump", because: "the server of the tests comes without pg_dump" },
  { page: "docs/operations.md", begins: "pg_restore", because: "the server of the tests comes without pg_restore" },
  { page: "docs/how-to/migrate-a-pyzmq-fleet.md", begins: "python3", because: "it needs pyzmq; examples/python.test.ts runs the producer, through a relay where that is missing" },
  { page: "examples/README.md", begins: "export PURSER_DATA_DIR=.purser-producer", because: "it needs pyzmq; examples/python.test.ts runs both programs" },
  { page: "docs/workflows.md", begins: "PURSER_DUNNING=on", because: "it is about charges that were declined before; test/e2e/test/dunning.test.ts has them" },
  { page: "docs/tutorial.md", begins: "checkout=$PWD", because: "it is how the command is called in a checkout; tutorial.test.ts follows the page with the command itself" },
  { page: "ops/README.md", begins: "docker", because: "it needs Docker; ops.test.ts reads the files" },
  { page: "ops/README.md", begins: "npm install", because: "it changes the machine: users and units of systemd; ops.test.ts reads the files" },
  { page: "ops/README.md", begins: "systemctl", because: "it starts services of the machine; ops.test.ts reads the units" },
  { page: "ops/README.md", begins: "kubectl", because: "it needs a cluster; ops.test.ts reads the manifests" },
  { page: "ops/README.md", begins: "purser keygen", because: "it needs a cluster; ops.test.ts reads the manifests" }
]

/** Why a block is not followed, if it is not. */
export const reasonOf = (page: string, { text }: Block): string | undefined =>
  notFollowed.find((one) => one.page === page && text.startsWith(one.begins))?.because

/** The shell blocks of a page that are followed, in order. */
export const followedBlocks = (page: string): ReadonlyArray<Block> =>
  blocksOf(readText(page)).filter((block) => block.language === "sh" && reasonOf(page, block) === undefined)

/** Ports that pages name, each of which becomes a free one. */
export const pagePorts = [5555, 5556, 12111, 12112, 4280, 9464] as const

/** A place of the page's for one of the test's. Comments stay as they are. */
const substitutes = (ports: ReadonlyMap<number, number>): ReadonlyArray<readonly [RegExp, (found: string) => string]> => [
  [/postgres:\/\/proxy@[\w.]+\/proxy/g, () => "$VAULTS_URL"],
  [/postgres:\/\/[^\s#]+/g, () => "$LEDGER_URL"],
  [/rk_(?:live_)?(?:your_restricted_key|…)/g, () => "rk_test_of_the_page"],
  [/vk_…/g, () => "$(cat \"$VAULT_KEY\")"],
  [/\b10\.0\.0\.\d+/g, () => "127.0.0.1"],
  [/(?<=[ :=])\d{4,5}\b/g, (found) => String(ports.get(Number(found)) ?? found)],
  // What serves is started in the background and waited for, by `purser` below.
  [/ &$/g, () => ""]
]

/** A block's text with the test's places. */
export const placed = (text: string, ports: ReadonlyMap<number, number>): string =>
  text.split("\n").map((line) => {
    const at = line.search(/(?:^|\s)#/)
    const [said, comment] = at === -1 ? [line, ""] : [line.slice(0, at), line.slice(at)]
    return substitutes(ports).reduce((done, [form, value]) => done.replaceAll(form, value), said.trimEnd()) + comment
  }).join("\n")

/**
 * What a page's commands mean in a test: `purser` is the bundled command, which is started in the background where it serves and
 * waited for; programs of the repository are found from any folder; the database of `psql` is there already.
 */
export const prelude = `set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
declare -A serving
purser() {
  # The simulator's own port is one of the page's too.
  if [ "$1" = sim ] && [[ " $* " != *" --port"* ]]; then set -- "$@" --port "$SIM_PORT"; fi
  case "$1" in
    sim|worker|runner|broker|proxy|console)
      # One that is started in another way takes the place of the one before.
      if [ -n "\${serving["$*"]:-}" ]; then kill "\${serving["$*"]}"; wait "\${serving["$*"]}" || true; fi
      local log; log=$(mktemp "$LOGS/XXXXXX")
      "$NODE" --disable-warning=ExperimentalWarning "$COMMAND" "$@" > "$log" 2>&1 &
      local pid=$!
      serving["$*"]=$pid
      until grep -Eq 'http://|tcp://|runner' "$log"; do
        if ! kill -0 "$pid" 2>/dev/null; then echo "purser $* has ended:" >&2; cat "$log" >&2; return 1; fi
        sleep 0.05
      done ;;
    # The periods of the pages are allowed by name: they are long over for who reads them later.
    run) "$NODE" --disable-warning=ExperimentalWarning "$COMMAND" "$@" --allow-period 2026-07 ;;
    vault) "$NODE" --disable-warning=ExperimentalWarning "$COMMAND" "$@" | tee "$LOGS/vault"
      if [ "$2" = create ]; then grep -Eo 'vk_[A-Za-z0-9_]+' "$LOGS/vault" | head -1 > "$VAULT_KEY"; fi ;;
    *) "$NODE" --disable-warning=ExperimentalWarning "$COMMAND" "$@" ;;
  esac
}
npm() { if [ "$1 $2" = "run -s" ]; then shift 4; purser "$@"; else echo "npm $* is not followed" >&2; fi; }
ours() { for word in "$@"; do case "$word" in examples/*|docs/*) echo "$ROOT/$word";; *) echo "$word";; esac; done; }
node() { local words; mapfile -t words < <(ours "$@"); "$NODE" --disable-warning=ExperimentalWarning "\${words[@]}"; }
python3() { local words; mapfile -t words < <(ours "$@"); command python3 "\${words[@]}"; }
psql() { :; }
# What changes the machine is never followed: its block stands in the list above.
for word in docker kubectl systemctl useradd sudo; do eval "$word() { echo '$word is not followed' >&2; exit 1; }"; done
`
