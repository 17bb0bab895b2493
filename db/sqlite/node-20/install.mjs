// npm runs this after it has installed the packages, in a checkout and in an installation. Version
// 13 of better-sqlite3 needs Node-API 10. On an older Node, such as Node 20, this installs version
// 12, where ../driver.ts finds it. npm downloads its binary or compiles it. It is not a dependency
// in package.json, because npm would then compile it on every Node.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
// npm ignores and keeps a folder whose name begins with a dot.
const folder = join(here, '..', '..', '..', 'node_modules', '.accord-node-20')
const [major] = process.versions.node.split('.').map(Number)

/** Whether an earlier installation, such as that of the last `npm install`, is still right. */
function isInstalled() {
  const [wanted, found] = [here, folder].map((each) => join(each, 'npm-shrinkwrap.json'))
  if (!existsSync(found) || !readFileSync(wanted).equals(readFileSync(found))) return false
  const program = `new (require('./node_modules/better-sqlite3'))(':memory:')`
  return spawnSync(process.execPath, ['-e', program], { cwd: folder, stdio: 'ignore' }).status === 0
}

// src/node-version.mjs refuses a Node that is older than 20.
if (major >= 20 && Number(process.versions.napi) < 10 && !isInstalled()) {
  mkdirSync(folder, { recursive: true })
  for (const name of ['package.json', 'npm-shrinkwrap.json']) cpSync(join(here, name), join(folder, name))
  const npm = process.env.npm_execpath
  const [program, first] = npm === undefined ? ['npm', []] : [process.execPath, [npm]]
  // npm passes the options of an outer `npm install --global` in variables; these options win.
  const options = ['--global=false', '--location=project', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync(program, [...first, 'ci', ...options], {
    cwd: folder,
    stdio: 'inherit',
    shell: npm === undefined && process.platform === 'win32',
  })
  if (status !== 0) {
    console.error(
      `better-sqlite3 12 could not be installed for Node ${process.versions.node}. It needs a download or Python, make and g++. Node 22.14 and newer need neither.`,
    )
    process.exit(1)
  }
}
