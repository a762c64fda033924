/** The oldest Node that this package runs on, for those whose package manager does not say it. The manifests name it as `engines`. */
const needed = "22.19"

/** What to tell somebody whose Node is too old; undefined where it is not. */
export const tooOld = (had: string): string | undefined => {
  const [[major = 0, minor = 0], [hadMajor = 0, hadMinor = 0]] = [needed, had].map((version) => version.split(".").map(Number)) as [Array<number>, Array<number>]
  return hadMajor > major || (hadMajor === major && hadMinor >= minor) ? undefined : `Purser needs Node ${needed} or newer, and this is Node ${had}`
}
