// compose.yaml and compose.cluster.yaml are valid Compose files and consistent with the Dockerfile,
// the settings and the command line. test/deploy/compose-proxy.test.ts runs the proxy.
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readConfig } from '../src/config/config.ts'
import type { Setting } from '../src/config/setting.ts'
import { settings } from '../src/config/settings.ts'
import { version } from '../src/installation/package-info.ts'
import { leafCommands } from './support/commands.ts'

interface Service {
  image: string
  build?: string
  command?: string[]
  environment?: Record<string, string>
  ports?: string[]
  volumes?: string[]
  healthcheck?: { disable?: boolean; test?: string[] }
  depends_on?: Record<string, { condition: string }>
}

interface Compose {
  services: Record<string, Service>
  configs?: Record<string, { content: string }>
  volumes: Record<string, unknown>
  networks?: { default: { ipam: { config: { subnet: string }[] } } }
}

const read = (path: string): string => readFileSync(path, 'utf8')
const files = ['compose.yaml', 'compose.cluster.yaml'] as const
/** `merge`: Compose supports the key `<<` of YAML 1.1. */
const composeOf = (file: string): Compose => parse(read(file), { merge: true }) as Compose
const dockerfile = read('Dockerfile')
const [, entry = ''] = /^CMD \["node", "(\S+)", "start"\]$/m.exec(dockerfile) ?? []
const [, port = ''] = /^EXPOSE (\d+)$/m.exec(dockerfile) ?? []
const [, folder = ''] = /^VOLUME (\S+)$/m.exec(dockerfile) ?? []
const own = (compose: Compose): Service[] => Object.values(compose.services).filter(({ build }) => build !== undefined)
const names = Object.values<Setting>(settings).map(({ name }) => name)
const commands = leafCommands().map(({ path }) => path)

describe.each(files)('%s', (file) => {
  const text = read(file)
  const compose = composeOf(file)

  it('is valid by the Compose specification', () => {
    const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false })
    addFormats.default(ajv)
    const isValid = ajv.compile(JSON.parse(read('node_modules/dclint/schemas/compose.schema.json')))
    expect(isValid(compose), JSON.stringify(isValid.errors)).toBe(true)
    expect(isValid({ services: { accord: { port: ['8000:8000'] } } })).toBe(false)
  })

  it('names only variables that are settings, besides the password of PostgreSQL', () => {
    const used = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name ?? '')
    const set = own(compose).flatMap(({ environment = {} }) => Object.keys(environment))
    const known = [...names, 'POSTGRES_PASSWORD']
    expect([...used, ...set].filter((name) => !known.includes(name))).toEqual([])
    expect(set.length).toBeGreaterThan(2)
  })

  it('gives every setting a value that the program accepts', () => {
    const values = { ACCORD_APP_URL: 'https://crm.example.com', POSTGRES_PASSWORD: 'f00d' }
    for (const { environment = {} } of own(compose)) {
      const filled = Object.entries(environment).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{(\w+)[^}]*\}/g, (_, key: keyof typeof values) => values[key]),
      ])
      expect(readConfig(Object.fromEntries(filled)).warnings).toEqual([])
    }
  })

  it('holds no secret', () => {
    const secret = /^\s*\w*(?:PASSWORD|SECRET)\w*: *(?!\$\{)\S/
    expect(text.split('\n').filter((line) => !line.startsWith('#') && secret.test(line))).toEqual([])
    expect(text).not.toMatch(/:\/\/[^\s/$]+:[^\s/$]+@/)
  })

  it('runs commands of this program as the image does', () => {
    expect(entry).toBe('dist/src/cli.js')
    const called = own(compose).flatMap(({ command }) => (command === undefined ? [] : [command]))
    for (const [node, script, ...rest] of called) {
      expect([node, script]).toEqual(['node', entry])
      expect(rest).toHaveLength(1)
      expect(commands).toContain(rest[0])
    }
    const hinted = [...text.matchAll(/node dist\/src\/cli\.js ([\w:-]+)/g)].map(([, name]) => name)
    expect(hinted.filter((name) => !commands.includes(name ?? ''))).toEqual([])
  })

  it('uses the port and the data folder of the image', () => {
    expect([port, folder]).toEqual(['8000', '/data'])
    for (const { volumes = [], healthcheck, ports = [] } of own(compose)) {
      expect(volumes).toContain(`data:${folder}`)
      if (healthcheck?.disable !== true) expect(healthcheck?.test?.join(' ')).toContain(`:${port}/readyz`)
      for (const each of ports) expect(each.split(':').at(-1)).toBe(port)
    }
    expect(Object.keys(compose.volumes)).toContain('data')
  })
})

describe('compose.cluster.yaml', () => {
  const { services, configs, networks } = composeOf('compose.cluster.yaml')

  it('runs two API processes and one worker, after one installation', () => {
    const running = Object.values(services).flatMap(({ command }) => (command ? [command.at(-1)] : []))
    expect(running.sort()).toEqual(['install', 'serve', 'serve', 'worker'])
    for (const name of ['api-1', 'api-2', 'worker'])
      expect(services[name]?.depends_on?.install?.condition).toBe('service_completed_successfully')
    expect(services['api-1']?.environment?.ACCORD_WORKER).toBe('off')
  })

  it('sends requests to both, and trusts the addresses of the network of the proxy', () => {
    const upstreams = /reverse_proxy (.*) \{/.exec(configs?.caddyfile?.content ?? '')?.[1]?.split(' ')
    expect(upstreams).toEqual([`api-1:${port}`, `api-2:${port}`])
    expect(services['api-1']?.environment?.ACCORD_TRUSTED_PROXIES).toBe(networks?.default.ipam.config[0]?.subnet)
  })

  it('has a PostgreSQL that this version supports', () => {
    const major = Number(services.postgres?.image.split(':')[1])
    expect(major, `version ${version}`).toBeGreaterThanOrEqual(15)
  })
})
