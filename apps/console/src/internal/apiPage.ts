/**
 * The page of documentation of the API, made from its OpenAPI description: plain HTML without a script, so that the console's
 * policy holds for it too.
 */
import type { OpenApi } from "effect/http-api"

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

type Json = { readonly [key: string]: unknown }
const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)
const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** A schema in a line or a few, as one would write a type. */
const typeOf = (schema: unknown, definitions: Json, depth: number): string => {
  if (!isJson(schema)) return "unknown"
  const ref = schema["$ref"]
  if (typeof ref === "string") {
    const name = ref.split("/").at(-1)!.replaceAll("~1", "/").replaceAll("~0", "~")
    return depth > 4 ? name : typeOf(definitions[name], definitions, depth + 1)
  }
  const either = list(schema["anyOf"] ?? schema["oneOf"])
  if (either.length > 0) return [...new Set(either.map((one) => typeOf(one, definitions, depth)))].join(" | ")
  const values = schema["enum"]
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(" | ")
  switch (schema["type"]) {
    case "array":
      return `${typeOf(schema["items"], definitions, depth)}[]`
    case "object": {
      if (!isJson(schema["properties"])) return `{ [name]: ${typeOf(schema["additionalProperties"], definitions, depth)} }`
      const needed = new Set(list(schema["required"]))
      const pad = "  ".repeat(depth + 1)
      const fields = Object.entries(schema["properties"]).map(([name, field]) => `${pad}${name}${needed.has(name) ? "" : "?"}: ${typeOf(field, definitions, depth + 1)}`)
      return fields.length === 0 ? "{}" : `{\n${fields.join("\n")}\n${"  ".repeat(depth)}}`
    }
    default:
      return typeof schema["type"] === "string" ? schema["type"] : "unknown"
  }
}

const bodyOf = (content: unknown, definitions: Json): string => {
  if (!isJson(content)) return ""
  return Object.entries(content).map(([type, media]) =>
    `<p class="media">${escape(type)}</p><pre>${escape(typeOf(isJson(media) ? media["schema"] : undefined, definitions, 0))}</pre>`).join("")
}

/** The whole page. */
export const apiPage = (spec: OpenApi.OpenAPISpec): string => {
  const definitions: Json = spec.components?.schemas ?? {}
  const operations = Object.entries(spec.paths).flatMap(([path, methods]) =>
    Object.entries(methods ?? {}).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation: operation as OpenApi.OpenAPISpecOperation })))
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))]
  const sections = tags.map((tag) => {
    const its = operations.filter(({ operation }) => operation.tags.includes(tag)).map(({ method, operation, path }) => {
      const parameters = operation.parameters.map((parameter) =>
        `<tr><td><code>${escape(parameter.name)}</code></td><td>${escape(parameter.in)}</td><td>${parameter.required ? "required" : ""}</td><td><code>${escape(typeOf(parameter.schema, definitions, 0))}</code></td><td>${escape(parameter.description ?? "")}</td></tr>`).join("")
      const request = operation.requestBody === undefined ? "" : `<h4>Body</h4>${bodyOf(operation.requestBody.content, definitions)}`
      const answers = Object.entries(operation.responses).map(([status, response]) =>
        `<details><summary>${escape(status)} <span>${escape(response.description)}</span></summary>${bodyOf(response.content, definitions)}</details>`).join("")
      return `<article id="${escape(operation.operationId)}"><h3><b class="${method.toLowerCase()}">${method}</b> <code>${escape(path)}</code></h3>
<p>${escape(operation.summary ?? operation.description ?? "")}</p>${parameters === "" ? "" : `<h4>Parameters</h4><table><tbody>${parameters}</tbody></table>`}${request}<h4>Answers</h4>${answers}</article>`
    }).join("\n")
    return `<section><h2>${escape(tag)}</h2>${its}</section>`
  }).join("\n")
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(spec.info.title)}: the API</title><link rel="stylesheet" href="docs.css"><link rel="icon" href="icon.svg"></head>
<body><main><h1>${escape(spec.info.title)}</h1><p>${escape(spec.info.description ?? "")}</p>
<p>The same as a description for programs: <a href="openapi.json">openapi.json</a>. A typed client comes with the package: <code>ConsoleClient</code>. <a href="./">Back to the console</a></p>
${sections}</main></body></html>`
}

/** Its style. */
export const apiStyle = `:root{color-scheme:light dark;--ink:#16202c;--dim:#556273;--line:#d9dfe6;--field:#f4f6f8;--link:#0b5cad;--get:#0b6b46;--post:#8a4b08}
@media (prefers-color-scheme:dark){:root{--ink:#e4eaf1;--dim:#9aa8b8;--line:#2b3744;--field:#131c26;--link:#7db7f2;--get:#5fd0a2;--post:#f0b061}body{background:#0d141c}}
body{margin:0;font:14px/1.5 system-ui,sans-serif;color:var(--ink)}main{max-width:60rem;margin:0 auto;padding:1.5rem}
a{color:var(--link)}h2{margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}h3{font-size:1rem;margin:1.6rem 0 .2rem;overflow-wrap:anywhere}h4{margin:.8rem 0 .2rem;font-size:.8rem;color:var(--dim)}
b.get{color:var(--get)}b.post{color:var(--post)}code,pre{font:12px/1.5 ui-monospace,monospace}pre{background:var(--field);padding:.7rem;overflow-x:auto;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
.media{margin:.3rem 0;color:var(--dim);font-size:.8rem}table{border-collapse:collapse}td{padding:.15rem .8rem .15rem 0;vertical-align:top}summary{cursor:pointer}summary span{color:var(--dim)}`
