// The lint reports mistakes in a contract with helpful sentences, and `regenerate --check` lists
// outdated files.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { changesFile } from '../../codegen/compat/changes.ts'
import { breakingFile, releasedFile } from '../../codegen/compat/released.ts'
import { renderDocument } from '../../codegen/document.ts'
import { withHeaders } from '../../codegen/headers.ts'
import { lint } from '../../codegen/lint.ts'
import { ignorableOf, renderOperations, slugOf } from '../../codegen/operations.ts'
import { listOperations, parseContract, type SchemaObject } from '../../codegen/read.ts'
import { outputs, regenerate } from '../../codegen/regenerate.ts'
import { operations } from '../../src/contract/operations.gen.ts'
import type { OperationFact } from '../../src/contract/types.ts'

const contract = `openapi: 3.1.0
info:
  title: Small
  version: 1.0.0
  description: A contract of two operations.
servers:
  - url: /
security:
  - bearer: []
tags:
  - name: Lead Sources
    description: Where leads come from.
paths:
  /sources:
    get:
      operationId: listSources
      tags: [Lead Sources]
      summary: List sources
      description: All of them.
      x-permission: settings.lead.sources
      x-ability: settings:read
      parameters:
        - name: page
          in: query
          description: Which page.
          schema: { type: integer, minimum: 1, maximum: 100, default: 1 }
        - name: ids
          in: query
          description: Only these.
          schema:
            type: array
            items: { type: integer, minimum: 1, maximum: 100 }
      responses:
        '200':
          description: Sources.
          content: { application/json: { schema: { $ref: '#/components/schemas/SourcePage' } } }
        '401': { $ref: '#/components/responses/Problem' }
        '403': { $ref: '#/components/responses/Problem' }
  /sources/{id}:
    put:
      operationId: updateSource
      tags: [Lead Sources]
      summary: Change a source
      description: Only what is sent changes.
      x-permission: settings.lead.sources.edit
      x-ability: settings:write
      x-events: [settings.source.update]
      parameters:
        - $ref: '#/components/parameters/Id'
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/SourceUpdate' } } }
      responses:
        '200':
          description: The source.
          content: { application/json: { schema: { $ref: '#/components/schemas/SourceResult' } } }
        '400': { $ref: '#/components/responses/Problem' }
        '401': { $ref: '#/components/responses/Problem' }
        '403': { $ref: '#/components/responses/Problem' }
        '404': { $ref: '#/components/responses/Problem' }
        '413': { $ref: '#/components/responses/Problem' }
        '415': { $ref: '#/components/responses/Problem' }
        '422': { $ref: '#/components/responses/Problem' }
components:
  securitySchemes:
    bearer: { type: http, scheme: bearer }
  responses:
    Problem:
      description: An error.
      content: { application/problem+json: { schema: { $ref: '#/components/schemas/Problem' } } }
  parameters:
    Id:
      name: id
      in: path
      required: true
      description: Its id.
      schema: { type: integer, minimum: 1, maximum: 9007199254740991 }
      example: 7
  schemas:
    Problem:
      description: An error.
      type: object
      required: [detail]
      properties:
        detail: { $ref: '#/components/schemas/ShownText' }
      example: { detail: No. }
    ShownText:
      description: A text.
      type: string
      example: Web
    Count:
      description: A number.
      type: integer
      minimum: 0
      maximum: 1000
      example: 1
    SentText:
      description: A text that is sent.
      type: string
      maxLength: 255
      example: Web
    SentCount:
      description: A number that is sent.
      type: integer
      minimum: 1
      maximum: 100
      example: 1
    Source:
      description: A source.
      type: object
      required: [id, name]
      properties:
        id: { $ref: '#/components/schemas/Count' }
        name: { $ref: '#/components/schemas/ShownText' }
        version: { $ref: '#/components/schemas/Count' }
        owner:
          description: Its owner.
          oneOf:
            - $ref: '#/components/schemas/OwnerRef'
            - type: 'null'
        lines:
          description: Its lines.
          type: array
          items:
            type: object
            required: [id]
            properties:
              id: { $ref: '#/components/schemas/Count' }
              name: { $ref: '#/components/schemas/ShownText' }
              total:
                description: Their sum.
                type: number
                format: money
      example: { id: 1, name: Web }
    OwnerRef:
      description: An owner.
      type: object
      required: [id]
      properties:
        id: { $ref: '#/components/schemas/Count' }
        name: { $ref: '#/components/schemas/ShownText' }
      example: { id: 1, name: Ada }
    SourceResult:
      description: One source.
      type: object
      required: [data]
      properties:
        data: { $ref: '#/components/schemas/Source' }
        message: { $ref: '#/components/schemas/ShownText' }
      example: { data: { id: 1, name: Web }, message: Source updated. }
    SourcePage:
      description: Some sources.
      type: object
      required: [data]
      properties:
        data:
          description: The sources.
          type: array
          items: { $ref: '#/components/schemas/Source' }
      example: { data: [{ id: 1, name: Web }] }
    SourceUpdate:
      description: Changes to a source.
      type: object
      additionalProperties: false
      properties:
        name:
          description: Its name.
          type: string
          maxLength: 255
        owner:
          description: Its owner.
          type: [object, 'null']
          additionalProperties: false
          properties:
            id: { $ref: '#/components/schemas/SentCount' }
        lines:
          description: Its lines.
          type: array
          items:
            type: object
            additionalProperties: false
            properties:
              id: { $ref: '#/components/schemas/SentCount' }
              name: { $ref: '#/components/schemas/SentText' }
      example: { name: Web }
`

const abilityAreas = ['settings', 'leads']
const permissionKeys = ['settings.lead.sources', 'settings.lead.sources.create', 'settings.lead.sources.edit']

function findings(from: string, to: string): string[] {
  expect(contract).toContain(from)
  return lint(parseContract(contract.replace(from, to)), { knowledge: { permissionKeys, abilityAreas } })
}

describe('headers', { timeout: 60_000 }, () => {
  const replies = `  responses:
    Problem:`
  const declared = `  x-headers:
    X-Request-Id:
      description: Its name.
      required: true
      x-carried-by: [every]
      schema: { type: string }
    ETag:
      description: Its version.
      required: true
      x-carried-by: [tagged]
      schema: { type: string }
    Retry-After:
      description: When to come again.
      x-carried-by: ['422']
      schema: { type: string }
${replies}`

  it('are declared in the responses that carry them', () => {
    const { document } = parseContract(contract.replace(replies, declared))
    const made = withHeaders(document)
    const names = (replies: unknown) =>
      Object.entries(replies as Record<string, { headers?: object }>).map(([name, { headers }]) => [
        name,
        Object.keys(headers ?? {}),
      ])
    const sources = made.paths?.['/sources'] as { get: { responses: object } } | undefined
    expect(names(sources?.get.responses ?? {})[0]).toEqual(['200', ['X-Request-Id', 'ETag']])
    expect(names(made.components?.responses)).toEqual([['Problem', ['X-Request-Id']]])
    expect(made.components?.headers).toMatchObject({ ETag: { required: true } })
    expect(JSON.stringify(made)).not.toContain('x-carried-by')
    expect(document.components?.headers).toBeUndefined()
  })

  it('without a response are refused', () => {
    const found = findings(replies, declared.replace('[tagged]', '[taged]')).join('\n')
    expect(found).toContain('ETag: no response is called taged')
  })
})

describe('lint', { timeout: 60_000 }, () => {
  it('has no findings for a careful contract', () => {
    expect(lint(parseContract(contract), { knowledge: { permissionKeys, abilityAreas } })).toEqual([])
  })

  it('accepts a key that is marked as written only', () => {
    const owner = '        owner:\n          description: Its owner.\n          type: [object'
    const note = ['note:', '  description: A note.', '  writeOnly: true', '  type: string', '  maxLength: 9']
    expect(findings(owner, note.map((line) => `        ${line}\n`).join('') + owner)).toEqual([])
  })

  it('shows the first error of the syntax alone, with its place and line', () => {
    expect(findings('summary: List sources', 'summary: List: sources: all')).toEqual([
      expect.stringMatching(/^openapi\.yaml:\d+:16 .*\n {8}summary: List: sources: all\n {17}\^$/),
    ])
    expect(findings('openapi: 3.1.0', 'openapi: 3.1.0\nopenapi: 3.1.0').join()).toMatch(/^openapi\.yaml:2:1 .* unique/)
  })

  it('refuses a misspelled x- key, with its line and a suggestion', () => {
    const found = findings('x-permission: settings.lead.sources\n', 'x-permision: settings.lead.sources\n')
    expect(found).toHaveLength(2)
    expect(found.join('\n')).toMatch(/openapi\.yaml:20 listSources: the key x-permision .* did you mean x-permission\?/)
    expect(found.join('\n')).toMatch(/listSources: nothing says who may call it/)
  })

  it.each([
    ['x-events: [', 'x-event: [', 'did you mean x-events?'],
    ['x-ability: settings:write', 'x_ability: settings:write', 'did you mean x-ability?'],
    ['description: Changes to a source.', 'x-entitty: sources', 'did you mean x-entity?'],
    ['description: Changes to a source.', 'X-Entity: sources\n      description: So.', 'did you mean x-entity?'],
    ['info:\n', 'info:\n  x-permission: leads\n', 'it belongs on an operation'],
    ['security:\n', 'x-anything: yes\nsecurity:\n', 'the key x-anything means nothing on a document'],
    ['  /sources/{id}:\n', '  /sources/{id}:\n    x-permission: leads\n', 'it belongs on an operation'],
    ['additionalProperties: false\n', 'additonalProperties: false\n', 'did you mean additionalProperties?'],
  ])('refuses %j written as %j', (from, to, sentence) => {
    expect(findings(from, to).join('\n')).toContain(sentence)
  })

  it.each([
    ['an unknown permission', 'lead.sources.edit', 'lead.source.edit', 'did you mean settings.lead.sources.edit?'],
    ['a missing 404', "        '404': { $ref: '#/components/responses/Problem' }\n", '', 'does not list 404'],
    ['a missing 401', "        '401': { $ref: '#/components/responses/Problem' }\n", '', 'does not list 401'],
    [
      'a second success',
      "        '401': {",
      "        '204':\n          description: None.\n        '401': {",
      '2 statuses of success',
    ],
    [
      'an unlisted event',
      '[settings.source.update]',
      '[settings.source.updated]',
      'did you mean settings.source.update?',
    ],
    [
      'a writer without events',
      '      x-events: [settings.source.update]\n',
      '',
      'exactly one of x-events and x-no-event',
    ],
    [
      'a part of the bytes without the answer to a wrong range',
      "        '401': {",
      "        '206':\n          description: Some.\n        '401': {",
      'it answers ranges but does not list 416',
    ],
    [
      'a file in JSON',
      '          maxLength: 255\n        owner',
      '          format: binary\n          maxLength: 255\n        owner',
      'is a file, which JSON cannot carry',
    ],
    ['a false example', 'example: { name: Web }', 'example: { nmae: Web }', 'the example is not valid'],
    ['a false default', 'default: 1', 'default: one', 'the default is not valid'],
    ['a missing example', '      example: { name: Web }\n', '', 'no example'],
    [
      'two callers',
      'x-ability: settings:read',
      'x-ability: settings:read\n      x-any-user: Because we can.',
      'more than one',
    ],
    ['a public operation by accident', 'x-ability: settings:read', 'security: []', 'more than one line says who'],
    ['a wrong ability', 'settings:read', 'settings:write', 'GET is covered by settings:read'],
    ['an ability of no area', 'x-ability: settings:write', 'x-ability: any:read', 'tokens know no area any'],
    ['a lost reference', "parameters/Id'", "parameters/ID'", 'leads nowhere'],
    ['an open body', '      additionalProperties: false\n', '', 'add additionalProperties: false'],
    [
      'a body that is open for no entity',
      '      additionalProperties: false\n',
      '      additionalProperties: true\n',
      'name their record type with x-entity',
    ],
    ['an unbounded id', ', maximum: 9007199254740991', '', 'lose digits in JavaScript'],
    ['allOf in a response', 'oneOf:\n', 'allOf:\n', 'allOf in a response'],
    [
      'a property without a description',
      '          description: Its name.\n',
      '',
      'SourceUpdate properties.name: no description',
    ],
    ['a sent text of any length', '          maxLength: 255\n', '', 'without a maximum length'],
    [
      'a sent text whose pattern repeats without end',
      '          maxLength: 255\n',
      '          pattern: ^[a-z]+$\n',
      'without a maximum length',
    ],
    ['a sent integer without bounds', '      maximum: 100\n', '', 'SentCount: an integer without bounds'],
    ['a shown integer without bounds', '      minimum: 0\n', '', 'Count: an integer without bounds'],
    [
      'a parameter without bounds',
      ', maximum: 100, default',
      ', default',
      'may fit no column and no type of a client; add maximum',
    ],
    [
      'an object of a response without required',
      '      required: [data]\n',
      '',
      'SourceResult: no key of this object is required',
    ],
    [
      'a key that is written but never shown',
      '        owner:\n          description: Its owner.\n          type: [object',
      "        note: { $ref: '#/components/schemas/SentText' }\n        owner:\n          description: Its owner.\n          type: [object",
      'updateSource: it accepts note, and no key of its response shows the value',
    ],
    ['capitals in a path', '  /sources:\n', '  /Sources:\n', '/Sources has capitals'],
    ['a path parameter without an example', '      example: 7\n', '', 'Id: no example of id'],
    ['a body that is a response', 'schemas/SourceUpdate', 'schemas/Source', 'or the two drift apart'],
    [
      'an optional body by accident',
      '        required: true\n        content',
      '        content',
      'write required: true or false',
    ],
    [
      'a schema that hides a global of the browser',
      '  schemas:\n',
      '  schemas:\n    Event:\n      description: It.\n      type: string\n      example: a\n',
      'would shadow the standard type Event',
    ],
    [
      'a schema that hides an exception of Python',
      '  schemas:\n',
      '  schemas:\n    ImportError:\n      description: It.\n      type: string\n      example: a\n',
      'would shadow the standard type ImportError',
    ],
    [
      'a schema with the name of a parameter',
      '  schemas:\n',
      '  schemas:\n    Id:\n      description: It.\n      type: string\n      example: a\n',
      'rename one, such as FilterId',
    ],
    [
      'a list of choices in three places',
      'type: string\n          maxLength: 255\n        owner',
      'enum: [a, b]\n        first: { enum: [a, b] }\n        second: { enum: [b, a] }\n        third: { enum: [a, b, null] }\n        owner',
      'SourceUpdate.third: the list ["a","b"] occurs in several places',
    ],
    [
      'a list of choices that a schema has',
      '  schemas:\n',
      '  schemas:\n    Kind:\n      enum: [a, b]\n    Inline:\n      properties:\n        kind: { enum: [a, b] }\n',
      'refer to Kind',
    ],
    [
      'a parameter of a path, which some generators drop',
      '  /sources/{id}:\n',
      "  /sources/{id}:\n    parameters:\n      - $ref: '#/components/parameters/Id'\n",
      'the key parameters means nothing on a pathItem',
    ],
    [
      'a schema that holds itself by way of another',
      'description: An owner.\n      type: object\n      required: [id]\n      properties:\n',
      "description: An owner.\n      type: object\n      required: [id]\n      properties:\n        source: { $ref: '#/components/schemas/Source' }\n",
      'Source: it contains itself',
    ],
    ['a wide line', 'description: All of them.', `description: ${'wide '.repeat(30)}`, 'has 169 columns'],
    [
      'a description among braces',
      'type: integer, minimum: 1, maximum: 100, default',
      'type: integer, description: It, minimum: 1, maximum: 100, default',
      'one key per line',
    ],
    [
      'parameters in one line',
      "parameters:\n        - $ref: '#/components/parameters/Id'",
      "parameters: [{ $ref: '#/components/parameters/Id' }]",
      'parameters are in one line',
    ],
    [
      'keys in another order',
      'summary: List sources\n      description: All of them.',
      'description: All of them.\n      summary: List sources',
      'summary comes after description',
    ],
    [
      'common errors one by one',
      "        '403': { $ref: '#/components/responses/Problem' }\n  /sources/{id}",
      ['400', '403', '422', '429', '503']
        .map((status) => `        '${status}': { $ref: '#/components/responses/Problem' }\n`)
        .join('')
        .concat('  /sources/{id}'),
      'listSources: every common error is listed',
    ],
    [
      'a common error beside default',
      "        '403': { $ref: '#/components/responses/Problem' }\n  /sources/{id}",
      "        default: { $ref: '#/components/responses/CommonErrors' }\n  /sources/{id}",
      'listSources: default stands for 401 here',
    ],
    [
      'a rule line before that of an earlier tag',
      '    description: Where leads come from.\n',
      '    description: Where leads come from.\n  - name: Others\n    description: Others.\n  # ── others ──\n  # ── lead sources ──\n',
      'lead sources comes after others; the parts follow the order of tags',
    ],
    [
      'a rule line of shared parts after that of a tag',
      '    description: Where leads come from.\n',
      '    description: Where leads come from.\n  # ── lead sources ──\n  # ── values ──\n',
      'values comes after lead sources; parts of several tags come first',
    ],
    [
      'a writing POST without the key for repeated requests',
      /get:\n( {6}operationId: listSources[\s\S]*?x-ability: settings:)read/.exec(contract)?.[0] ?? '',
      /get:\n( {6}operationId: listSources[\s\S]*?x-ability: settings:)read/
        .exec(contract)?.[0]
        .replace('get:', 'post:')
        .replace('read', 'write\n      x-events: [settings.source.create]') ?? '',
      'listSources: a client that repeats it changes things twice',
    ],
    [
      'an unknown server of it',
      'x-ability: settings:read',
      'x-ability: settings:read\n      x-served-by: magic',
      'write docs',
    ],
  ])('refuses %s', (_what, from, to, sentence) => {
    expect(findings(from, to).join('\n')).toContain(sentence)
  })

  it('refuses a long list of parameters that two operations repeat, but not an alias', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const list = names.map(
      (name) => `        - name: ${name}\n          in: query\n          schema: { type: string, maxLength: 9 }\n`,
    )
    const operation = /get:\n[\s\S]+?(?= {2}.sources.\{id\}:)/.exec(contract)?.[0] ?? ''
    const withTwo = (first: string, second: string) => {
      const get = (id: string, parameters: string) =>
        `    ${operation.replace('listSources', id).replace(/ {6}parameters:\n( {8}.+\n)+/, `      parameters:${parameters}`)}`
      const both = `  /sources:\n${get('listSources', first)}  /others:\n${get('listOthers', second)}`
      const text = contract.replace(/ {2}\/sources:\n[\s\S]+?(?= {2}.sources.\{id\}:)/, both)
      return lint(parseContract(text), { knowledge: { permissionKeys, abilityAreas } })
    }
    const written = `\n${list.join('')}`
    expect(withTwo(written, written).join('\n')).toContain('listOthers: it repeats the parameters of listSources')
    expect(withTwo(` &shared${written}`, ' *shared\n')).toEqual([])
  })

  it('refuses two paths that could be the same URL, but not where an id is a number', () => {
    const withPaths = (...paths: string[]) => {
      const listed =
        /get:[\s\S]+?(?= {2}.sources.\{id\}:)/.exec(contract)?.[0].replace('listSources', 'listOthers') ?? ''
      const added = paths.map((path, index) => {
        const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) =>
          name === 'id'
            ? `$ref: '#/components/parameters/Id'`
            : `name: ${name}\n          in: path\n          required: true\n          schema: { type: string }`,
        )
        const operation = listed.replace('listOthers', `listOthers${index}`)
        return `  ${path}:\n    ${operation.replace('parameters:', `parameters:\n        - ${names.join('\n        - ')}`)}`
      })
      const text = contract.replace('components:\n', `${added.join('')}components:\n`)
      return lint(parseContract(text), { knowledge: { permissionKeys, abilityAreas } }).filter((finding) =>
        finding.includes('same URL'),
      )
    }
    expect(withPaths('/sources/of/{kind}', '/sources/{id}/history')).toEqual([])
    expect(withPaths('/sources/of/{kind}', '/sources/{word}/history').join()).toContain(
      '/sources/{word}/history and /sources/of/{kind}',
    )
    expect(withPaths('/sources/of/all', '/sources/of/{kind}')).toEqual([])
  })

  it('refuses an unused component', () => {
    expect(
      findings(
        '  schemas:\n',
        '  schemas:\n    Spare:\n      description: Idle.\n      type: string\n      example: a\n',
      ).join(),
    ).toContain('Spare: no operation uses it')
  })
})

describe('common errors', { timeout: 60_000 }, () => {
  const shared = "        default: { $ref: '#/components/responses/CommonErrors' }\n"
  const withDefault = contract
    .replace(/ {8}'(401|403)': .+\n(?= {8}'403'| {2}\/)/g, '')
    .replace('  /sources/{id}:', `${shared}  /sources/{id}:`)
    .replace(/( {8}'4\d\d': .+\n)+components/, `${shared}components`)
    .replace('  schemas:', '    CommonErrors:\n      description: Others.\n  schemas:')

  it('are exact statuses in the served contract', () => {
    const { document } = parseContract(withDefault)
    const [read, write] = listOperations(document).map(({ operation }) => Object.keys(operation.responses ?? {}))
    expect(read).toEqual(['200', '400', '401', '403', '422', '429', '503'])
    expect(write).toEqual(['200', '400', '401', '403', '413', '415', '422', '429', '503'])
    expect(document.components?.responses).not.toHaveProperty('CommonErrors')
  })

  it('leave out 401 and 403 for a public operation', () => {
    const { document } = parseContract(withDefault.replace('x-ability: settings:read', 'security: []'))
    expect(Object.keys(listOperations(document)[0]?.operation.responses ?? {})).toEqual([
      '200',
      '400',
      '422',
      '429',
      '503',
    ])
  })
})

describe('operations', { timeout: 60_000 }, () => {
  const parsed = parseContract(contract)

  it('names the read-only keys at every depth', () => {
    const { Source, SourceUpdate } = parsed.document.components?.schemas ?? {}
    expect(ignorableOf(parsed.document, SourceUpdate as SchemaObject, Source as SchemaObject)).toEqual({
      keys: ['id', 'version'],
      nested: { owner: { keys: ['name'], nested: {} }, lines: { keys: ['total'], nested: {} } },
    })
  })

  it('lists the derived keys of a record, which no event counts as changed', () => {
    const { derivedKeys }: OperationFact = operations.getLead
    expect(derivedKeys).toEqual(['rotten_days', 'is_rotten'])
  })

  it('says what to send instead of a read-only key', () => {
    const string = { type: 'string' } as SchemaObject
    const reply = { properties: { status: { ...string, 'x-hint': 'follows the stage' }, user: string, tags: string } }
    const body = { properties: { user_id: string, tag_ids: string } }
    expect(ignorableOf(parsed.document, body as SchemaObject, reply as unknown as SchemaObject)?.hints).toEqual({
      status: 'follows the stage',
      user: 'send user_id',
      tags: 'send tag_ids',
    })
  })

  it('lets only create and update accept read-only keys', () => {
    expect(renderOperations(parsed)).toContain('"ignorable":{"keys":["id","version"]')
    const verb = parseContract(contract.replace('operationId: updateSource', 'operationId: moveSource'))
    expect(renderOperations(verb)).not.toContain('"keys":["id"')
  })

  it('states the facts that the server needs', () => {
    const text = renderOperations(parsed)
    expect(text).toContain(`export const contractHash = '${parsed.hash}'`)
    expect(text).toContain('"query":{"page":"integer","ids":"array"}')
    expect(text).toContain('"permission":"settings.lead.sources.edit","ability":"settings:write"')
    expect(text).toContain("| 'settings.source.update'")
    expect(text).toContain('"slug":"lead-sources"')
  })

  it('turns a tag into a folder name', () => {
    expect(slugOf('Email Templates')).toBe('email-templates')
  })
})

describe('regenerate', { timeout: 60_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), 'accord-codegen-'))
  afterAll(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'src'))
  writeFileSync(join(root, 'src/cli.ts'), '')
  writeFileSync(join(root, 'package.json'), '{}')
  const save = (text: string) => writeFileSync(join(root, 'openapi.yaml'), text)

  it('writes every file once and then leaves it unchanged', async () => {
    save(contract)
    const paths = outputs.map(({ path }) => path)
    const nothing = { written: [], stale: [], findings: [], warnings: [] }
    expect(await regenerate({ root, check: false })).toEqual({ ...nothing, written: paths })
    expect(await regenerate({ root, check: false })).toEqual(nothing)
    expect(await regenerate({ root, check: true })).toEqual(nothing)
    for (const path of paths) {
      expect(readFileSync(join(root, path), 'utf8').split('\n').slice(0, 2).join()).toMatch(/generated/i)
    }
  })

  it('names the stale files when a limit changes, and with --check writes none', async () => {
    save(contract.replace('maxLength: 255', 'maxLength: 100'))
    const document = join(root, 'src/contract/document.gen.json')
    const before = statSync(document).mtimeMs
    const { stale, written } = await regenerate({ root, check: true })
    expect(stale).toEqual(['src/contract/operations.gen.ts', 'src/contract/document.gen.json'])
    expect(written).toEqual([])
    expect(statSync(document).mtimeMs).toBe(before)
  })

  it('writes nothing from a contract with findings', async () => {
    cpSync(join(root, 'src'), join(root, 'before'), { recursive: true })
    save(contract.replace('summary: List sources', 'sumary: List sources'))
    const { findings: found, written } = await regenerate({ root, check: false })
    expect(found.join('\n')).toContain('did you mean summary?')
    expect(written).toEqual([])
    for (const file of ['operations.gen.ts', 'document.gen.json']) {
      const now = readFileSync(join(root, 'src/contract', file))
      expect(now.equals(readFileSync(join(root, 'before/contract', file)))).toBe(true)
    }
  })
  it('warns of a change that the gate will refuse, when it writes the changelog', async () => {
    save(contract)
    mkdirSync(join(root, 'test/contract'), { recursive: true })
    writeFileSync(join(root, breakingFile), '')
    writeFileSync(join(root, releasedFile), renderDocument(parseContract(contract)))
    expect((await regenerate({ root, check: false })).warnings).toEqual([])
    save(contract.replace('maxLength: 255', 'maxLength: 100'))
    const { warnings, written } = await regenerate({ root, check: false })
    expect(written).toContain(changesFile)
    expect(warnings.join('\n')).toContain('which breaks clients of')
  })
})
