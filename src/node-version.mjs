// Refuses a version of Node that cannot run the program. Programs import this file before all
// others, because an older Node would fail at one of those with an error that does not name the
// reason. The range is `engines` of package.json.
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node 20.19 or newer is needed; this is ${process.versions.node}.`)
  process.exit(1)
}
