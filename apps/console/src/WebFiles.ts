/**
 * The files of the page, read once and kept in memory, packed for those who take them packed. In a checkout the page is built
 * when it is missing or was built from other sources.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { extname, join, relative, sep } from "node:path"
import { gzipSync } from "node:zlib"
import { stampFile, webSources, webStamp } from "./internal/webStamp.ts"

/** The page is not there, and cannot be built. */
export class PageMissing extends Schema.TaggedError<PageMissing>("@purser/console/PageMissing")("PageMissing", { detail: Schema.String }) {
  override get message() {
    return `the console's page is not built: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2"
}

interface WebFile {
  readonly type: string
  readonly body: Uint8Array
  readonly packed: Uint8Array
  readonly etag: string
  /** Its name changes with its content. */
  readonly forever: boolean
}

const here = import.meta.dirname
const packageFolder = join(here, "..")

/** Where a build lies: in a checkout and in the package under `dist`, beside the one file of the packed command. */
const places = [join(packageFolder, "dist", "web"), join(here, "web")]

const read = (folder: string): ReadonlyMap<string, WebFile> =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== stampFile).map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const name = relative(folder, path).split(sep).join("/")
      const body = readFileSync(path)
      const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`
      return [name, { type: types[extname(name)] ?? "application/octet-stream", body, packed: gzipSync(body, { level: 9 }), etag, forever: name.startsWith("assets/") }]
    })
  )

const buildPage = Effect.callback<void, PageMissing>((resume) => {
  execFile(process.execPath, ["--disable-warning=ExperimentalWarning", join(packageFolder, "scripts", "buildWeb.ts")], { cwd: packageFolder }, (error, _, stderr) =>
    resume(error === null ? Effect.void : Effect.fail(new PageMissing({ detail: stderr.trim() || error.message }))))
})

const isFresh = (folder: string) => {
  const stamp = join(folder, stampFile)
  return existsSync(stamp) && readFileSync(stamp, "utf8") === webStamp(packageFolder)
}

/** The page's files. */
export class WebFiles extends Context.Service<WebFiles, {
  /** Answers with the file of this name; undefined for one that is not there. */
  readonly file: (name: string) => Effect.Effect<HttpServerResponse.HttpServerResponse | undefined, never, HttpServerRequest.HttpServerRequest>
  /** Names with their sizes as they are sent packed. */
  readonly sizes: ReadonlyArray<readonly [name: string, packedBytes: number]>
}>()("@purser/console/WebFiles") {
  /** Builds the page where it has to be built. */
  static readonly layer: Layer.Layer<WebFiles, PageMissing> = Layer.effect(
    WebFiles,
    Effect.gen(function*() {
      if (webSources(packageFolder) !== undefined && !isFresh(places[0]!)) yield* buildPage
      const folder = places.find((place) => existsSync(join(place, "index.html")))
      if (folder === undefined) return yield* new PageMissing({ detail: "the package has no build of it" })
      const files = read(folder)
      return WebFiles.of({
        sizes: [...files].map(([name, { packed }]) => [name, packed.length]),
        file: Effect.fnUntraced(function*(name) {
          const found = files.get(name)
          if (found === undefined) return undefined
          const request = yield* HttpServerRequest.HttpServerRequest
          const headers = {
            etag: found.etag,
            "cache-control": found.forever ? "public, max-age=31536000, immutable" : "no-cache",
            vary: "accept-encoding"
          }
          if (request.headers["if-none-match"] === found.etag) return HttpServerResponse.empty({ status: 304, headers })
          const isPacked = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "")
          return HttpServerResponse.uint8Array(isPacked ? found.packed : found.body, {
            contentType: found.type,
            headers: isPacked ? { ...headers, "content-encoding": "gzip" } : headers
          })
        })
      })
    })
  )
}
