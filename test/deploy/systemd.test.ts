// The units in deploy/systemd, and the settings in all files of deploy.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { settings } from '../../src/config/settings.ts'
import { needing } from '../support/programs.ts'

const folder = 'deploy/systemd'
const units = readdirSync(folder)
const read = (name: string): string => readFileSync(join(folder, name), 'utf8')

describe('the systemd units', () => {
  needing('systemd-analyze').it('are accepted by systemd-analyze', () => {
    const paths = units.map((name) => join(folder, name))
    expect(execFileSync('systemd-analyze', ['verify', '--man=no', ...paths], { encoding: 'utf8' })).toBe('')
  })

  it('run commands and options that exist', () => {
    const commands = units.flatMap((name) =>
      [...read(name).matchAll(/^ExecStart=\/usr\/bin\/env accord (.+)$/gm)].map(([, line = '']) => line.split(' ')),
    )
    expect(commands.map(([command]) => command).sort()).toEqual(['backup', 'start', 'worker'])
    for (const [command = '', ...rest] of commands) {
      const help = execFileSync(process.execPath, ['--import', 'tsx', 'src/cli.ts', command, '--help'], {
        encoding: 'utf8',
      })
      for (const option of rest.filter((word) => word.startsWith('--'))) expect(help).toContain(option)
    }
  })

  it('give the server longer to stop than it takes at most', () => {
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(read('accord.service'))?.[1])
    expect(seconds).toBeGreaterThanOrEqual(10)
  })
})

describe('the files in deploy', () => {
  const files = readdirSync('deploy', { recursive: true, encoding: 'utf8' }).filter((path) => /\.\w+$|file$/.test(path))

  it.each(files)('%s names only settings that exist', (path) => {
    const named = [...readFileSync(join('deploy', path), 'utf8').matchAll(/\bACCORD_\w+/g)].map(([name]) => name)
    const known = new Set<string>(Object.values(settings).map(({ name }) => name))
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })
})
