/** The files of `ops` fit together, fit the program, and keep to the rules of what they are written for. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { posix } from "node:path"
import { parse } from "yaml"
import { commandHelp, type CommandHelp } from "../src/CliHelp.ts"
import { argumentProblems, knownKeys, unknownKeys } from "../src/Commands.ts"
import { at, compose, dockerfileProblems, entriesAt, instructions, listAt, manifests, type Tree, unitOf, workloads, yamlProblems } from "../src/Ops.ts"
import { filesIn, kindOf, readText } from "../src/Pages.ts"

const files = filesIn("ops").filter((path) => !path.startsWith("ops/telemetry/") && !/\/(?:keys|data)\//.test(path))
const units = files.filter((path) => /\.(?:service|timer)$/.test(path))
const words = (tree: Tree): ReadonlyArray<string> => Array.isArray(tree) ? tree.map(String) : []
const secrets = ["PURSER_STRIPE_KEY", "PURSER_DATABASE_URL", "PURSER_WEBHOOK_SECRET", "PURSER_PROXY_STRIPE_KEY", "PURSER_PROXY_DATABASE_URL"]

const said = (commands: ReadonlyArray<CommandHelp>) => [
  ...workloads().flatMap(({ file, pod }) => listAt(pod, "containers").map((container) => ({ file, args: words(at(container, "args")) }))),
  ...entriesAt(compose(), "services").flatMap(([name, service]) => at(service, "image") === "purser" ? [{ file: `compose.yml, ${name}`, args: words(at(service, "command")) }] : []),
  ...units.flatMap((file) => (unitOf(file).get("Service") ?? []).flatMap(([name, text]) => name === "ExecStart" ? [{ file, args: text.split(" ").slice(2) }] : [])),
  { file: "Dockerfile", args: JSON.parse(instructions(readText("ops/docker/Dockerfile")).find(([name]) => name === "CMD")![1]) as ReadonlyArray<string> }
].flatMap(({ args, file }) => args.length === 0 ? [`${file}: no command`] : argumentProblems(args, commands).map((problem) => `${file}: ${problem}`))

it.effect("name commands, flags and settings that exist", () =>
  Effect.gen(function*() {
    const keys = knownKeys()
    assert.deepStrictEqual(said(yield* commandHelp()), [])
    assert.deepStrictEqual(files.flatMap((path) => unknownKeys(readText(path), keys).map((problem) => `${path}: ${problem}`)), [])
  }), 60_000)

it("are YAML, no key twice", () => {
  assert.deepStrictEqual(files.filter((path) => /\.ya?ml$/.test(path)).flatMap(yamlProblems), [])
})

it("hold no secret", () => {
  const literal = files.flatMap((path) =>
    [...readText(path).matchAll(/\b(PURSER_\w+)(?:=|: ?|, value: ?)"?([^\s"#,}]*)/g)].filter(([, key, value]) => secrets.includes(key!) && !/^(?:\$\{?|postgres:\/\/\w+(?::PASSWORD)?@|$)/.test(value!)).map(([text]) => `${path}: ${text}`))
  assert.deepStrictEqual(literal, [])
})

describe("the image", () => {
  const dockerfile = readText("ops/docker/Dockerfile")

  it("keeps to the rules, and to the versions of the workspace", () => {
    assert.deepStrictEqual(dockerfileProblems(dockerfile), [])
    const { packageManager } = JSON.parse(readText("package.json")) as { readonly packageManager: string }
    assert.include(dockerfile, `npm install --global ${packageManager} `)
    const node = at(parse(readText("pnpm-workspace.yaml")) as Tree, "catalog", "node")
    assert.match(dockerfile, new RegExp(`^FROM node:${String(node)}-`, "m"))
    for (const line of readText("ops/docker/Dockerfile.dockerignore").trim().split("\n")) assert.notMatch(line, /^(?:packages|apps|scripts)$/)
  })

  it("would be refused with what the rules are against", () => {
    const bad = "FROM node:latest\nADD . /src\nWORKDIR src\nRUN sudo apt-get install curl\nRUN npm install -g pnpm\nCOPY --from=nowhere a b\nCMD purser\n"
    assert.lengthOf(dockerfileProblems(bad), 9)
  })
})

describe("compose", () => {
  const file = compose()
  const services = entriesAt(file, "services")

  it("refers to what is there, pins images, and gives time to stop", () => {
    assert.isAbove(services.length, 5)
    const problems = services.flatMap(([name, service]) => {
      const image = String(at(service, "image"))
      const named = [...words(at(service, "networks")).filter((network) => entriesAt(file, "networks").every(([one]) => one !== network)), ...entriesAt(service, "depends_on").map(([one]) => one).filter((one) => services.every(([other]) => other !== one))]
      const volumes = words(at(service, "volumes")).map((volume) => volume.split(":")[0]!).filter((source) => source.startsWith(".")
        ? !/^\.\/(?:keys(?:\/[\w.]+)?|data)$/.test(source) && kindOf(posix.join("ops/docker", source)) === undefined
        : entriesAt(file, "volumes").every(([one]) => one !== source))
      return [
        ...named.map((one) => `${name}: there is no ${one}`),
        ...volumes.map((one) => `${name}: there is no ${one}`),
        ...(image === "purser" || /:[\w.-]*\d/.test(image) ? [] : [`${name}: pin ${image}`]),
        ...(image !== "purser" || at(service, "stop_grace_period") === "30s" ? [] : [`${name}: no time to stop`]),
        ...words(at(service, "ports")).filter((port) => !port.startsWith("127.0.0.1:")).map((port) => `${name}: ${port} is open to everybody`)
      ]
    })
    assert.deepStrictEqual(problems, [])
    assert.strictEqual(at(file, "services", "producer", "build", "dockerfile"), "ops/docker/Dockerfile")
  })

  it("asks for variables that the example of its settings has", () => {
    const asked = [...readText("ops/docker/compose.yml").matchAll(/\$\{(\w+)[:?}]/g)].map((match) => match[1]!)
    const offered = [...readText("ops/docker/purser.env.example").matchAll(/^(\w+)=/gm)].map((match) => match[1]!)
    assert.sameMembers([...new Set(asked)], offered)
  })
})

describe("systemd", () => {
  it("units run as nobody special, start again, and have time to stop", () => {
    assert.isAbove(units.length, 7)
    const problems = units.filter((path) => path.endsWith(".service")).flatMap((path) => {
      const unit = unitOf(path)
      const service = new Map(unit.get("Service"))
      const wants: ReadonlyArray<readonly [string, RegExp]> = [
        ["User", /^purser$/], ["ExecStart", /^\/usr\/bin\/env purser /], ["TimeoutStopSec", /^[3-9]\d$/], ["NoNewPrivileges", /^yes$/], ["ProtectSystem", /^strict$/], ["EnvironmentFile", /^\/etc\/purser\/\w+\.env$/],
        ...(service.get("Type") === "oneshot" ? [] : [["Restart", /^always$/] as const])
      ]
      const known = ["Unit", "Service", "Install"]
      return [
        ...[...unit.keys()].filter((section) => !known.includes(section)).map((section) => `${path}: [${section}]`),
        ...wants.filter(([name, form]) => !form.test(service.get(name) ?? "")).map(([name]) => `${path}: ${name}`),
        ...(new Map(unit.get("Unit")).has("Description") ? [] : [`${path}: Description`]),
        ...(kindOf(`ops/systemd/${service.get("EnvironmentFile")!.split("/").at(-1)!}.example`) === "file" ? [] : [`${path}: no example of its settings`])
      ]
    })
    assert.deepStrictEqual(problems, [])
    for (const timer of units.filter((path) => path.endsWith(".timer"))) assert.include(units, timer.replace(".timer", ".service"))
  })

  it("units that the page enables are there", () => {
    const [, enabled] = /systemctl enable --now ([^\n]+)/.exec(readText("ops/README.md"))!
    for (const name of enabled!.split(" ")) {
      const unit = name.replace(/@.*/, "@.service")
      assert.include(units.map((path) => posix.basename(path)), /\.\w+$/.test(unit) ? unit : `${unit}.service`)
    }
  })
})

describe("kubernetes", () => {
  const all = manifests()
  const has = (kind: string, name: Tree) => all.some(({ manifest }) => at(manifest, "kind") === kind && at(manifest, "metadata", "name") === name)
  const bears = (labels: Tree, selector: Tree) => entriesAt(selector).every(([name, value]) => at(labels, name) === value)

  it("pods run as nobody special, within limits, and have time to stop", () => {
    assert.isAbove(workloads().length, 5)
    const problems = workloads().flatMap(({ file, labels, manifest, pod }) => {
      const containers = listAt(pod, "containers")
      const keeps = at(manifest, "kind") !== "CronJob"
      const checks: ReadonlyArray<readonly [string, boolean]> = [
        ["runs as root", at(pod, "securityContext", "runAsNonRoot") === true],
        ["has no time to stop", Number(at(pod, "terminationGracePeriodSeconds")) >= 30],
        ["holds a token of the cluster", at(pod, "automountServiceAccountToken") === false],
        ["selects other pods", !keeps || bears(labels, at(manifest, "spec", "selector", "matchLabels"))],
        ...containers.flatMap((container): ReadonlyArray<readonly [string, boolean]> => [
          ["has no limit of memory", at(container, "resources", "limits", "memory") !== undefined && at(container, "resources", "requests", "cpu") !== undefined],
          ["may write to its image", at(container, "securityContext", "readOnlyRootFilesystem") === true && at(container, "securityContext", "allowPrivilegeEscalation") === false],
          ["is not looked after", !keeps || at(container, "livenessProbe") !== undefined],
          ["probes a port that it has not", ["livenessProbe", "readinessProbe"].every((probe) => [at(container, probe, "httpGet", "port"), at(container, probe, "tcpSocket", "port")].every((port) => port === undefined || listAt(container, "ports").some((one) => at(one, "name") === port)))],
          ["mounts what is not there", listAt(container, "volumeMounts").every((mount) => listAt(pod, "volumes").some((volume) => at(volume, "name") === at(mount, "name")))],
          ["has settings from nowhere", listAt(container, "envFrom").every((source) => has("ConfigMap", at(source, "configMapRef", "name")))]
        ])
      ]
      return checks.filter(([, holds]) => !holds).map(([problem]) => `${file}: ${problem}`)
    })
    assert.deepStrictEqual(problems, [])
  })

  it("services, budgets and policies are about pods that are there, and ports that these have", () => {
    const problems = all.flatMap(({ file, manifest }) => {
      const kind = String(at(manifest, "kind"))
      const selector = kind === "Service" ? at(manifest, "spec", "selector") : kind === "PodDisruptionBudget" ? at(manifest, "spec", "selector", "matchLabels") : kind === "NetworkPolicy" ? at(manifest, "spec", "podSelector", "matchLabels") : undefined
      if (selector === undefined) return []
      const chosen = workloads().filter(({ labels }) => bears(labels, selector))
      const ports = chosen.flatMap(({ pod }) => listAt(pod, "containers").flatMap((container) => listAt(container, "ports").map((port) => at(port, "name"))))
      const named = kind === "Service" ? listAt(manifest, "spec", "ports").map((port) => at(port, "targetPort")) : listAt(manifest, "spec", "ingress").flatMap((rule) => listAt(rule, "ports").map((port) => at(port, "port")))
      return [...(chosen.length === 0 ? [`${file}: ${kind} chooses nothing`] : []), ...named.filter((port) => !ports.includes(port)).map((port) => `${file}: ${kind} has no port ${String(port)}`)]
    })
    assert.deepStrictEqual(problems, [])
  })

  it("are all in the list, and take secrets that the page makes", () => {
    const kustomization = parse(readText("ops/kubernetes/kustomization.yaml")) as Tree
    assert.sameMembers([...words(at(kustomization, "resources")), "kustomization.yaml"], filesIn("ops/kubernetes").map((path) => posix.basename(path)))
    const page = readText("ops/README.md")
    const used = workloads().flatMap(({ pod }) => listAt(pod, "containers").flatMap((container) => listAt(container, "env").map((one) => at(one, "valueFrom", "secretKeyRef")).filter((one) => one !== undefined)))
    assert.isAbove(used.length, 5)
    for (const one of used) assert.match(page, new RegExp(`generic ${String(at(one, "name"))} [^\\n]*--from-literal=${String(at(one, "key"))}=`))
    for (const { pod } of workloads()) {
      for (const volume of listAt(pod, "volumes")) {
        const source = at(volume, "secret", "secretName") ?? at(volume, "configMap", "name")
        if (source !== undefined) assert.include(page, ` ${String(source)} --from-file=`)
      }
    }
  })
})
