// `npm pack` runs this before and after it reads the files. The package contains the locked
// versions of its dependencies (npm-shrinkwrap.json), so an installation has the versions that were
// tested. --remove deletes the file again, because npm would prefer it to package-lock.json.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const path = 'npm-shrinkwrap.json'

/** Returns the lock file without the packages that only development needs. */
export function shrinkwrap(lockfile) {
  const { '': root, ...packages } = lockfile.packages
  const { devDependencies: _, ...published } = root
  const needed = Object.entries(packages).filter(([, { dev }]) => !dev)
  return { ...lockfile, packages: { '': published, ...Object.fromEntries(needed) } }
}

if (process.argv[1] !== fileURLToPath(import.meta.url)) {
  // A test imports the function.
} else if (process.argv.includes('--remove')) rmSync(path, { force: true })
else
  writeFileSync(path, `${JSON.stringify(shrinkwrap(JSON.parse(readFileSync('package-lock.json', 'utf8'))), null, 2)}\n`)
