/**
 * The trail, written a page to a statement: `0002_create_ledger` explains it. Each statement that moves charges has `newPage` among its
 * parts, notes the page in the rows that it moves, and writes the page of their lines.
 */

/** Lines that a page may have: as many charges as a statement may move. */
export const eventPageMax = 1024

/**
 * Draws the page's number once a row asks for it: for statements that write new charges, or ask of each row whether it is still what it was, by `event_seq` or
 * by `isNext`. Another one may have written a line for a later row meanwhile, in a page above this one, and lines of a charge are told in the order of their pages.
 */
export const newPage = "ep as materialized (select purser.next_event_page() as page)"
/** Draws it when all rows of the part `locked` are locked, so that no line of theirs can come between. */
export const newPageAfter = (locked: string) => `ep as materialized (select purser.next_event_page() as page from (select count(*) from ${locked}) all_locked)`
/** Where a statement reads the page's number; one that has `ep` among its tables reads `ep.page`. */
const drawn = "(select page from ep)"
/** Whether no line of the charge `c` is in a page above this one. */
export const isNextTo = (page: string) => `c.event_pages[cardinality(c.event_pages)] < ${page}`
export const isNext = isNextTo(drawn)
/** What `event_pages` of a new charge says. */
export const firstPage = `array[${drawn}]`
/** What `event_pages` of the charge `c` says from now on. */
export const withNext = (page: string) => `c.event_pages || ${page}`
export const withPage = withNext(drawn)

/** What the lines of a page say, as expressions over the rows that moved, of which `to` and `worker` are never null; `same` for what is the same in all of them. */
interface Lines {
  readonly from: string | Same
  readonly to: string | Same
  readonly worker: string | Same
  readonly detail: string | Same
  readonly seq?: string | Same
  readonly attempt?: string | Same
  readonly principal?: string | Same
}
interface Same {
  readonly same: string | null
  readonly orNone?: true
}

/** The same in each line of the page: an expression that is not null, or null. */
export const same = (value: string | null): Same => ({ same: value })
/** The same in each line of the page: an expression that may be null. */
export const sameOrNone = (value: string): Same => ({ same: value, orNone: true })
const allSay = ({ orNone, same: value }: Same): string =>
  value === null ? "null" : orNone === true ? `case when ${value} is not null then array[${value}] end` : `array[${value}]`

/** Each aggregate is paid for by each statement, so that only long texts which nearly always agree are looked at for that: by their bytes. */
const collect = {
  each: (name: string) => `array_agg(v."${name}")`,
  some: (name: string) => `case when count(v."${name}") > 0 then array_agg(v."${name}") end`,
  alike: (name: string) => `case when min(v."${name}" collate "C") = max(v."${name}" collate "C") then array[min(v."${name}" collate "C")] else array_agg(v."${name}") end`
}

const columns = [
  { name: "seqs", of: "seq", type: "integer", collected: collect.each },
  { name: "from_states", of: "from", type: "text", collected: collect.some },
  { name: "to_states", of: "to", type: "text", collected: collect.alike },
  { name: "workers", of: "worker", type: "text", collected: collect.alike },
  { name: "attempts", of: "attempt", type: "integer", collected: collect.each },
  { name: "details", of: "detail", type: "text", collected: collect.some },
  { name: "principals", of: "principal", type: "text", collected: collect.some }
] as const

/**
 * Writes the page of the rows `rows`, which have `charge_key`, and `event_seq` and `attempt` unless `lines` says otherwise. Nothing where there are none. With
 * `page`, an expression over the rows, there are several pages: one for each of its values.
 */
export const writeEvents = (rows: string, lines: Lines, page?: string): string => {
  const said = { seq: "event_seq", attempt: "attempt", principal: same(null), ...lines }
  const varying = columns.filter(({ of }) => typeof said[of] === "string")
  const one = ({ collected, of }: typeof columns[number]): string => {
    const value = said[of]
    return typeof value === "string" ? collected(of) : allSay(value)
  }
  const taken = varying.map(({ of, type }) => `, (${said[of]})::${type} as "${of}"`).join("")
  return `insert into purser.charge_event_pages (page, at, keys, ${columns.map(({ name }) => name).join(", ")})
  select ${page === undefined ? drawn : "v.page"}, purser.now(), array_agg(v.charge_key::text), ${columns.map(one).join(", ")}
  from (select charge_key${page === undefined ? "" : `, ${page} as page`}${taken} from ${rows}) v ${page === undefined ? "having count(*) > 0" : "group by v.page"}`
}

/** The page where all rows move: of arrays of what their lines say, and of what is the same in all. It is written when `from` has its one row, which may have the page's number. */
export const writeWholeEvents = (keys: string, lines: Required<Lines>, from: string, page = drawn): string => {
  const one = ({ of }: typeof columns[number]): string => {
    const value = lines[of]
    return typeof value === "string" ? value : allSay(value)
  }
  return `insert into purser.charge_event_pages (page, at, keys, ${columns.map(({ name }) => name).join(", ")})
  select ${page}, purser.now(), ${keys}, ${columns.map(one).join(", ")} from ${from}`
}

/** The key that an object's name has in it. */
export const keyIn = (object: string) => `substring(${object} from '[0-9a-f]{32}')`

const keyPattern = /[0-9a-f]{32}/
const hexDigits = "0123456789abcdef"

/** Whether it is this one. A name that ends with it after something short, as nearly all do, is known without the pattern, which is dear where it is cold. */
export const hasKey = (object: string, key: string): boolean => {
  const at = object.length - key.length
  return at > 0 && at <= 32 && !hexDigits.includes(object[at - 1]!) && object.endsWith(key) || keyPattern.exec(object)?.[0] === key
}

/** Notes objects of the rows `rows` as their charges', by an expression that is null where there is none. */
export const writeObjects = (rows: string, object: string): string =>
  `insert into purser.charge_objects (object, charge_key) select v.object, v.charge_key from (select charge_key, ${object} as object from ${rows}) v where v.object is not null`

/** The same for objects that are attached: the line of that names them, so that one whose name has the key is found by the key. */
export const writeAttached = (rows: string, object: string): string => `${writeObjects(rows, object)} and ${keyIn("v.object")} is distinct from v.charge_key`
