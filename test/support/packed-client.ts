// Packs the client package, and compiles and runs programs that import it as an integrator does.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)
const cache = resolve('node_modules/.cache')
const strict = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']

export interface PackedClient {
  /** The folder of the programs. */
  folder: string
  /** The folder of the package. */
  packed: string
  /** Compiles a program, strictly unless `options` say otherwise, and returns the errors. */
  compile(name: string, text: string, options?: readonly string[]): Promise<string>
  /** Runs a compiled program, and returns its output. */
  run(name: string, env: Record<string, string>): Promise<string>
  remove(): void
}

export async function packClient(): Promise<PackedClient> {
  // Inside node_modules, so that the package finds its dependencies.
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'accord-packed-'))
  const packed = join(folder, 'node_modules/@accord-crm/client')
  mkdirSync(packed, { recursive: true })
  await exec(process.execPath, ['codegen/client/pack.mjs', packed])
  return {
    folder,
    packed,
    async compile(name, text, options = strict) {
      const path = join(folder, `${name}.mts`)
      writeFileSync(path, text)
      // The folder of an integrator is not below the tsconfig.json of this repository.
      const args = [resolve('node_modules/typescript-native/bin/tsc'), '--ignoreConfig', ...options, path]
      const compiled = exec(process.execPath, args, { cwd: folder })
      // The compiler writes its errors to stdout.
      const ended = await compiled.catch((cause: { stdout?: string }) => {
        if (!cause.stdout) throw cause
        return { stdout: cause.stdout }
      })
      return ended.stdout
    },
    async run(name, env) {
      const options = { env: { PATH: process.env.PATH, ...env } }
      return (await exec(process.execPath, [join(folder, `${name}.mjs`)], options)).stdout
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
