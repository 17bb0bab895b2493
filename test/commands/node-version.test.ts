// A Node that is too old gets one sentence, from every program that a user starts.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** Runs a program in a Node that says it has another version. */
function runAs(version: string, program: string): { status: number | null; stderr: string } {
  const pretend = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`
  const { status, stderr } = spawnSync(process.execPath, ['--import', `data:text/javascript,${pretend}`, program], {
    encoding: 'utf8',
  })
  return { status, stderr }
}

const refusal = (version: string): string => `Node 20.19 or newer is needed; this is ${version}.\n`

describe('an older Node', () => {
  it.each(['codegen/build.mjs', 'test/run.mjs', 'src/node-version.mjs'])('is refused by %s', (program) => {
    expect(runAs('18.20.8', program)).toEqual({ status: 1, stderr: refusal('18.20.8') })
  })

  it.each(['20.18.3', '16.0.0'])('such as %s is too old, and the oldest of package.json is not', (version) => {
    const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
    expect(engines.node).toBe('>=20.19')
    expect(runAs(version, 'src/node-version.mjs')).toEqual({ status: 1, stderr: refusal(version) })
    for (const good of ['20.19.0', '22.0.0', '24.1.0'])
      expect(runAs(good, 'src/node-version.mjs')).toEqual({ status: 0, stderr: '' })
  })

  it('is refused by the command line before any other import', () => {
    const imports = [...readFileSync('src/cli.ts', 'utf8').matchAll(/^import .*$/gm)].map(([line]) => line)
    expect(imports).toEqual(["import './node-version.mjs'"])
  })
})
