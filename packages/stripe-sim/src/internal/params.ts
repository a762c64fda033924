/**
 * Parameters of a request: parsing the form body and checking it against an endpoint's rules.
 *
 * Defines the rule table that each endpoint writes against the SDK's parameter type, so a parameter that Stripe
 * adds breaks the compile until it is placed. Refuses to ignore anything in silence: what Stripe does not know is
 * `parameter_unknown`, what Stripe knows and the simulator does not is refused by name.
 */
import { parse } from "qs"
import { type Answer, invalid } from "./answer.ts"
import type { MetadataRecord } from "./records.ts"

/** A parsed form value. */
export type ParamValue = string | ReadonlyArray<ParamValue> | { readonly [key: string]: ParamValue }

/** Parsed parameters, by top-level name. */
export type Params = { readonly [key: string]: ParamValue }

/**
 * What a parameter must look like. `clearable` takes the empty string as "unset"; `retired` is a list of texts that
 * API versions since 2026-09-30 refuse.
 */
export type Rule =
  | "string"
  | "clearable"
  | "int"
  | "bool"
  | "hash"
  | "hashes"
  | "strings"
  | "retired"
  | "range"
  | "metadata"
  | "unsimulated"
  | ReadonlyArray<string>

/** The parameters of one endpoint. */
export type Rules = { readonly [name: string]: Rule }

const parameterLimit = 1000

/** The parameters of a form text, or undefined when there are more than Stripe's parser takes. */
export const parseForm = (text: string): Params | undefined => {
  if (text === "") return {}
  let separators = 0
  for (let at = text.indexOf("&"); at !== -1; at = text.indexOf("&", at + 1)) separators++
  if (separators >= parameterLimit) return undefined
  // plainObjects: `metadata[constructor]` is a key like any other and must not be dropped.
  return parse(text, { plainObjects: true, depth: 8, arrayLimit: parameterLimit, parameterLimit }) as Params
}

/** One text per set of parameters, whatever their order: what an idempotency key compares. */
export const canonical = (value: ParamValue): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonical).join(",")}]`
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? "")}`).join(",")}}`
}

const isArray = (value: ParamValue): value is ReadonlyArray<ParamValue> => Array.isArray(value)
const isHash = (value: ParamValue): value is { readonly [key: string]: ParamValue } =>
  typeof value === "object" && !isArray(value)

const shown = (value: ParamValue): string => typeof value === "string" ? value : JSON.stringify(value)

const checkMetadata = (value: ParamValue): Answer | undefined => {
  if (value === "") return undefined
  if (!isHash(value)) return invalid("Invalid object", "metadata")
  const entries = Object.entries(value)
  if (entries.length > 50) {
    return invalid(`You can only specify up to 50 metadata keys; you passed in ${entries.length}.`, "metadata")
  }
  for (const [key, item] of entries) {
    if (key.length > 40) {
      return invalid(
        `Metadata keys can have up to 40 characters, but you passed in a key that is ${key.length} characters. Invalid key: ${key}`,
        `metadata[${key}]`
      )
    }
    if (typeof item !== "string") return invalid(`Invalid string: ${shown(item)}`, `metadata[${key}]`)
    if (item.length > 500) {
      return invalid(
        `Metadata values can have up to 500 characters, but you passed in a value that is ${item.length} characters. Invalid value: ${item}`,
        `metadata[${key}]`
      )
    }
  }
  return undefined
}

const checkOne = (name: string, value: ParamValue, rule: Rule, apiVersion: string): Answer | undefined => {
  if (rule === "metadata") return checkMetadata(value)
  if (rule === "retired" && apiVersion >= "2026-09-30") {
    return invalid(
      `The parameter ${name} is no longer supported in this API version; see allowed_${name}.`,
      name,
      `${name}_no_longer_supported`
    )
  }
  if (rule === "unsimulated") return invalid(`The simulator does not simulate the parameter: ${name}`, name)
  if (value === "" && rule !== "clearable") {
    return invalid(
      `You passed an empty string for '${name}'. We assume empty values are an attempt to unset a field; however '${name}' cannot be unset. You should remove '${name}' from your request or supply a non-empty value.`,
      name,
      "parameter_invalid_empty"
    )
  }
  if (rule === "hashes") {
    return isArray(value) && value.every(isHash) ? undefined : invalid("Invalid array", name)
  }
  if (rule === "hash") return isHash(value) ? undefined : invalid("Invalid object", name)
  if (rule === "range") return checkRange(name, value)
  if (rule === "strings" || rule === "retired") {
    return isArray(value) && value.every((item) => typeof item === "string" && item !== "")
      ? undefined
      : invalid("Invalid array", name)
  }
  if (typeof value !== "string") {
    return rule === "int"
      ? invalid(`Invalid integer: ${shown(value)}`, name, "parameter_invalid_integer")
      : invalid(`Invalid string: ${shown(value)}`, name)
  }
  if (rule === "int") return checkInteger(name, value)
  if (rule === "bool") {
    return value === "true" || value === "false" ? undefined : invalid(`Invalid boolean: ${value}`, name)
  }
  if (typeof rule === "object" && !rule.includes(value)) {
    return invalid(`Invalid ${name}: must be one of ${rule.join(", ")}`, name)
  }
  return undefined
}

const checkInteger = (name: string, value: string): Answer | undefined =>
  /^-?[0-9]{1,15}$/.test(value) ? undefined : invalid(`Invalid integer: ${value}`, name, "parameter_invalid_integer")

const checkRange = (name: string, value: ParamValue): Answer | undefined => {
  if (typeof value === "string") return checkInteger(name, value)
  if (!isHash(value)) return invalid("Invalid object", name)
  for (const [key, item] of Object.entries(value)) {
    if (!["gt", "gte", "lt", "lte"].includes(key)) {
      return invalid(`Received unknown parameter: ${name}[${key}]`, `${name}[${key}]`, "parameter_unknown")
    }
    const refused = typeof item === "string" ? checkInteger(`${name}[${key}]`, item) : invalid("Invalid integer", name)
    if (refused !== undefined) return refused
  }
  return undefined
}

/** The first thing wrong with the parameters, or undefined. */
export const check = (params: Params, rules: Rules, apiVersion: string): Answer | undefined => {
  const unknown = Object.keys(params).filter((name) => !Object.hasOwn(rules, name))
  if (unknown.length > 0) {
    return invalid(
      `Received unknown parameter${unknown.length > 1 ? "s" : ""}: ${unknown.join(", ")}`,
      unknown[0],
      "parameter_unknown"
    )
  }
  for (const [name, value] of Object.entries(params)) {
    const rule = rules[name]
    const refused = rule === undefined ? undefined : checkOne(name, value, rule, apiVersion)
    if (refused !== undefined) return refused
  }
  return undefined
}

/** The 400 for the first `expand` that the endpoint cannot do, or undefined. */
export const unexpandable = (params: Params, known: ReadonlyArray<string>): Answer | undefined => {
  const unknown = texts(params, "expand").find((name) => !known.includes(name))
  return unknown === undefined
    ? undefined
    : invalid(`This property cannot be expanded (${unknown}).`, "expand", "property_cannot_be_expanded")
}

/** The 400 for a parameter that must be there. */
export const required = (name: string): Answer =>
  invalid(`Missing required param: ${name}.`, name, "parameter_missing")

/** A checked text parameter. */
export const text = (params: Params, name: string): string | undefined => {
  const value = params[name]
  return typeof value === "string" ? value : undefined
}

/** A checked integer parameter. */
export const integer = (params: Params, name: string): number | undefined => {
  const value = params[name]
  return typeof value === "string" ? Number(value) : undefined
}

/** A text parameter where the empty text unsets the field and absence keeps it. */
export const textOr = (params: Params, name: string, kept: string | null): string | null => {
  const value = params[name]
  return typeof value === "string" ? (value === "" ? null : value) : kept
}

/** A checked list of texts. */
export const texts = (params: Params, name: string): ReadonlyArray<string> => {
  const value = params[name]
  return value !== undefined && isArray(value) ? value.filter((item) => typeof item === "string") : []
}

/** A checked list of hashes. */
export const hashes = (params: Params, name: string): ReadonlyArray<Params> => {
  const value = params[name]
  return value !== undefined && isArray(value) ? value.filter(isHash) : []
}

/** A checked hash. */
export const hashOf = (params: Params, name: string): Params | undefined => {
  const value = params[name]
  return value !== undefined && isHash(value) ? value : undefined
}

/** One entry of a hash parameter, when it is a text. */
export const inHash = (params: Params, name: string, key: string): string | undefined => {
  const value = params[name]
  const item = value !== undefined && isHash(value) ? value[key] : undefined
  return typeof item === "string" ? item : undefined
}

/** Stored metadata after an update: given keys win, an empty value removes its key, an empty `metadata` removes all. */
export const mergeMetadata = (stored: MetadataRecord, params: Params): MetadataRecord => {
  const given = params["metadata"]
  if (given === undefined) return stored
  if (given === "" || !isHash(given)) return {}
  const merged: Record<string, string> = { ...stored }
  for (const [key, item] of Object.entries(given)) {
    if (item === "") delete merged[key]
    else if (typeof item === "string") merged[key] = item
  }
  return merged
}
