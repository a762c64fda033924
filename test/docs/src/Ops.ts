/** The files of `ops` as data: manifests, compose, units, the Dockerfile. It judges nothing. */
import { parse, parseAllDocuments } from "yaml"
import { filesIn, readText } from "./Pages.ts"

/** Anything that YAML can hold. */
export type Tree = { readonly [name: string]: Tree } | ReadonlyArray<Tree> | string | number | boolean | null | undefined

/** Follows names into a tree: `at(manifest, "spec", "template")`. */
export const at = (tree: Tree, ...names: ReadonlyArray<string | number>): Tree =>
  names.reduce<Tree>((found, name) => typeof found === "object" && found !== null ? (found as Record<string | number, Tree>)[name] : undefined, tree)

/** A list, or none. */
export const listAt = (tree: Tree, ...names: ReadonlyArray<string | number>): ReadonlyArray<Tree> => {
  const found = at(tree, ...names)
  return Array.isArray(found) ? found as ReadonlyArray<Tree> : []
}

/** Names and values of a tree, or none. */
export const entriesAt = (tree: Tree, ...names: ReadonlyArray<string | number>): ReadonlyArray<readonly [string, Tree]> => {
  const found = at(tree, ...names)
  return typeof found === "object" && found !== null && !Array.isArray(found) ? Object.entries(found) : []
}

/** What is wrong with the YAML of a file; a key that stands twice is. */
export const yamlProblems = (path: string): ReadonlyArray<string> =>
  [...parseAllDocuments(readText(path), { merge: true })].flatMap((document) => [...document.errors, ...document.warnings].map(({ message }) => `${path}: ${message.split("\n")[0]}`))

/** Every manifest of `ops/kubernetes`, with the file that it is in. */
export const manifests = (): ReadonlyArray<{ readonly file: string; readonly manifest: Tree }> =>
  filesIn("ops/kubernetes").filter((path) => path.endsWith(".yaml")).flatMap((file) =>
    [...parseAllDocuments(readText(file))].map((document) => ({ file, manifest: document.toJS() as Tree })))

/** Manifests that run pods: their name, pod, and the labels that their pods bear. */
export const workloads = () =>
  manifests().flatMap(({ file, manifest }) => {
    const template = at(manifest, "kind") === "CronJob" ? at(manifest, "spec", "jobTemplate", "spec", "template") : at(manifest, "spec", "template")
    return template === undefined ? [] : [{ file, manifest, name: String(at(manifest, "metadata", "name")), pod: at(template, "spec"), labels: at(template, "metadata", "labels") }]
  })

/** The compose file, its anchors merged. */
export const compose = (): Tree => parse(readText("ops/docker/compose.yml"), { merge: true }) as Tree

/** A unit of systemd: its lines by section. */
export const unitOf = (path: string): ReadonlyMap<string, ReadonlyArray<readonly [string, string]>> => {
  const sections = new Map<string, Array<readonly [string, string]>>()
  let section = ""
  for (const line of readText(path).split("\n")) {
    section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
    const setting = /^(\w+)=(.*)$/.exec(line)
    if (setting !== null) sections.set(section, [...sections.get(section) ?? [], [setting[1]!, setting[2]!]])
  }
  return sections
}

/** Instructions of a Dockerfile, continued lines joined, comments left out. */
export const instructions = (text: string): ReadonlyArray<readonly [string, string]> =>
  text.replaceAll(/^#.*\n/gm, "").replaceAll(/\\\n\s*/g, "").split("\n").filter((line) => line.trim() !== "").map((line) => {
    const [, name, rest] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? []
    return [name?.toUpperCase() ?? line, rest ?? ""]
  })

/** What is wrong with a Dockerfile, by the rules that hadolint has for what is in it. */
export const dockerfileProblems = (text: string): ReadonlyArray<string> => {
  const all = instructions(text)
  const from = all.filter(([name]) => name === "FROM")
  const last = all.slice(all.findLastIndex(([name]) => name === "FROM"))
  const stages = from.flatMap(([, rest]) => / AS (\S+)$/i.exec(rest)?.[1] ?? [])
  const known = new Set(["FROM", "RUN", "COPY", "WORKDIR", "ENV", "ARG", "USER", "ENTRYPOINT", "CMD", "STOPSIGNAL", "EXPOSE", "LABEL", "VOLUME", "HEALTHCHECK"])
  return [
    ...all.filter(([name]) => !known.has(name)).map(([name]) => `${name} is no instruction that is wanted here`),
    ...from.filter(([, rest]) => !/^[\w./-]+:(?!latest\b)[\w.-]+(?: AS \w+)?$/i.test(rest)).map(([, rest]) => `FROM ${rest}: pin a version`),
    ...(last.some(([name, rest]) => name === "USER" && rest !== "root" && rest !== "0") ? [] : ["the last stage runs as root"]),
    ...all.filter(([name, rest]) => (name === "ENTRYPOINT" || name === "CMD") && !rest.startsWith("[")).map(([name]) => `${name}: write it as a list, so that signals arrive`),
    ...all.filter(([name, rest]) => name === "WORKDIR" && !rest.startsWith("/")).map(([, rest]) => `WORKDIR ${rest}: make it absolute`),
    ...all.filter(([name, rest]) => name === "RUN" && /\bsudo\b|\bcd \//.test(rest)).map(([, rest]) => `RUN ${rest}: neither sudo nor cd`),
    ...all.filter(([name, rest]) => name === "RUN" && /apt-get install(?!.*--no-install-recommends)/.test(rest)).map(() => "apt-get install without --no-install-recommends"),
    ...all.filter(([name, rest]) => name === "RUN" && /npm install\b.*\s[a-z@][\w/-]*(?:\s|$)/.test(rest.replaceAll(/--\S+/g, "").split("&&")[0]!)).map(([, rest]) => `RUN ${rest}: pin what npm installs`),
    ...all.flatMap(([name, rest]) => {
      const stage = name === "COPY" ? /--from=(\S+)/.exec(rest)?.[1] : undefined
      return stage !== undefined && !stages.includes(stage) ? [`COPY --from=${stage}: there is no such stage`] : []
    })
  ]
}
