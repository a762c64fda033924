/** The archives in other hands: installed into an empty project with npm, where they are used. Further package managers and Nodes: `matrix.test.ts`. */
import { execPath } from "node:process"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { expectToWork, expectToWorkWithout } from "../src/expectToWork.ts"
import { install, npm } from "../src/project.ts"
import { must, packAll, type Packed, readPacked, root, scratch } from "../src/published.ts"

const archives = scratch("archives")
let packed: ReadonlyArray<Packed> = []

beforeAll(async () => {
  packed = await packAll(archives)
}, 240_000)
afterAll(() => rmSync(archives, { recursive: true, force: true }))

it("npm installs all of them into an empty project, where they compile, run and bill", async () => {
  const folder = await install(npm, packed)
  await expectToWork(folder, execPath)
  await expectToWorkWithout(folder, execPath)
  rmSync(folder, { recursive: true, force: true })
}, 240_000)

it("npm pack in a package's folder gives the same archive, and leaves the folder as it was", async () => {
  const { folder, tarball } = packed.find((one) => one.folder === "apps/console")!
  const place = join(root, folder)
  const before = readFileSync(join(place, "package.json"), "utf8")
  const other = scratch("npm-pack")
  const [made] = JSON.parse(await must("npm", ["pack", "--json", "--pack-destination", other], { cwd: place })) as ReadonlyArray<{ readonly filename: string }>
  const own = join(other, made!.filename)
  const filesOf = async (archive: string) => (await must("tar", ["-tzf", archive])).trim().split("\n").filter((path) => !path.endsWith("/")).toSorted()
  expect(await filesOf(own)).toEqual(await filesOf(tarball))
  expect(JSON.parse(await readPacked(own, "package.json"))).toEqual(JSON.parse(await readPacked(tarball, "package.json")))
  expect([readFileSync(join(place, "package.json"), "utf8"), existsSync(join(place, "LICENSE"))]).toEqual([before, false])
  rmSync(other, { recursive: true, force: true })
}, 240_000)
