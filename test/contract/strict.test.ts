// The served contract in a strict validator with the standard formats, which must accept all its
// schemas.
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { beforeAll, describe, expect, it } from 'vitest'
import { extensionKeys, partsOf } from '../../codegen/grammar.ts'
import type { ContractDocument } from '../../codegen/read.ts'
import { valueNames } from '../../src/contract/input/formats.ts'
import { startServer } from '../support/app.ts'

let document: ContractDocument
beforeAll(async () => {
  const server = await startServer()
  document = (await server.admin.get('/openapi.json')).body
  await server.close()
})

const pointer = (at: readonly (string | number)[]): string =>
  at.map((step) => `/${encodeURIComponent(String(step).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

describe('the served document', () => {
  it('compiles in a strict validator with the standard formats alone', () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateSchema: false, addUsedSchema: false })
    ajvFormats.default(ajv)
    for (const { name, kind } of extensionKeys) if (kind === 'schema') ajv.addKeyword(name)
    // The keys of the document are not keywords of JSON Schema.
    for (const name of Object.keys(document)) ajv.addKeyword(name)
    ajv.addSchema(document, 'contract')
    const found: string[] = []
    for (const { kind, at } of partsOf(document)) {
      // Nested schemas are compiled with their parents.
      const isWhole = kind === 'schema' && (at.at(-1) === 'schema' || at.length === 3)
      if (!isWhole) continue
      try {
        ajv.getSchema(`contract#${pointer(at)}`)
      } catch (error) {
        found.push(`${at.join('.')}: ${(error as Error).message}`)
      }
    }
    expect(found).toEqual([])
  })

  it('names a value of the house only beside a format or a pattern that others know', () => {
    const values = [...partsOf(document)].filter(({ kind, node }) => kind === 'schema' && node['x-value'] !== undefined)
    expect(values.length).toBeGreaterThan(10)
    for (const { node, at } of values) {
      expect(valueNames, at.join('.')).toContain(node['x-value'])
      expect(node.format ?? node.pattern, at.join('.')).toBeDefined()
    }
  })

  it('offers no file in a body of JSON', () => {
    const found = [...partsOf(document)].filter(
      ({ kind, node, at }) => kind === 'mediaType' && at.at(-1) === 'application/json' && hasFile(node.schema),
    )
    expect(found.map(({ at }) => at.join('.'))).toEqual([])
  })

  function hasFile(schema: unknown, open: readonly unknown[] = []): boolean {
    if (typeof schema !== 'object' || schema === null || open.includes(schema)) return false
    const { $ref, format } = schema as { $ref?: string; format?: string }
    if (format === 'binary') return true
    const parts = $ref ? [document.components?.schemas?.[$ref.split('/').at(-1) ?? '']] : Object.values(schema)
    return parts.some((part) => hasFile(part, [...open, schema]))
  }
})
