// `accord demo` as a process: it prints its URLs, and Ctrl-C removes all its files.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { accord, accordServing } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'

const folder = useNewFolder('demo-test')
let temporary: string
beforeEach(() => {
  temporary = join(folder, 'tmp')
  mkdirSync(temporary)
})

it('prints its addresses, reads no settings, and leaves nothing behind', { timeout: 240_000 }, async () => {
  const environment = {
    TMPDIR: temporary,
    ACCORD_DATA_DIR: join(folder, 'data'),
    ACCORD_APP_NAME: 'Of the environment',
  }
  const demo = await accordServing(folder, 'demo', environment)
  for (const line of ['Sign-in', 'Password       accord-demo', 'E-mails        http://127.0.0.1:', 'Webhooks'])
    expect(demo.said.stdout).toContain(`\n  ${line}`)
  expect(await (await fetch(`${demo.url}/`)).text()).toContain('"name":"Accord CRM"')
  expect(readdirSync(temporary)).toEqual([expect.stringMatching(/^accord-demo-/)])
  expect((await demo.stop('SIGINT')).code).toBe(0)
  expect(readdirSync(temporary)).toEqual([])
  expect(existsSync(join(folder, 'data')) || existsSync(join(folder, '.env'))).toBe(false)
})

it('names the option for a wrong port', async () => {
  const { code, stdout, stderr } = await accord(folder, ['demo', '--port', 'x'], { TMPDIR: temporary })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toBe('--port must be a whole number from 0 to 65534, not "x". 0 takes free ports.\n')
  expect(readdirSync(temporary)).toEqual([])
})
