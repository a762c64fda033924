/** Which endpoint of the API a request is for: by its method and path, so that what was refused before it came there is known too. */
import { HttpApi } from "effect/http-api"
import { ConsoleApi } from "../api/ConsoleApi.ts"

const known: Array<{ readonly method: string; readonly path: RegExp; readonly name: string }> = []
HttpApi.reflect(ConsoleApi, {
  onGroup: () => undefined,
  onEndpoint: ({ endpoint, group }) => {
    known.push({ method: endpoint.method, path: new RegExp(`^${endpoint.path.replaceAll(/:\w+/g, "[^/]+")}$`), name: `${group.identifier}.${endpoint.identifier}` })
  }
})

/** The endpoint as `group.endpoint`; `page` for the page's files, its documentation, and what is not there. */
export const endpointOf = (method: string, url: string): string => {
  const path = url.split("?")[0]!
  return known.find((one) => one.method === method && one.path.test(path))?.name ?? "page"
}
