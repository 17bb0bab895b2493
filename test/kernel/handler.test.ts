// Type checks: a missing handler, two handlers of one operation, a reply with an additional or
// missing field, and an unknown event do not compile.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

const snippet = `import type { EventBase, Schema } from '../../../src/contract/types.ts'
import { type Handler, type Handlers, type HandlersFor, mergeHandlers } from '../../../src/kernel/handler.ts'
import type { ColumnsOf } from '../../../src/kernel/resource/definition.ts'

declare const all: Handlers
declare const source: Schema<'Source'>
const { moveLead: _forgotten, ...rest } = all
export const complete: Handlers = { ...rest, moveLead: all.moveLead }
// @ts-expect-error one handler is missing
export const incomplete: Handlers = rest
export const merged: Handlers = mergeHandlers(rest, { moveLead: all.moveLead })
// @ts-expect-error an operation has two handlers
mergeHandlers(all, { moveLead: all.moveLead })
// @ts-expect-error a handler of no operation
export const invented: HandlersFor<'getSource'> = { getSource: all.getSource, getSauce: all.getSource }
export const right: Handler<'getSource'> = async (_ctx, { params }) => ({ data: { ...source, id: params.id } })
// @ts-expect-error a reply without its data
export const empty: Handler<'getSource'> = async () => ({})
// @ts-expect-error the id is a number
export const wrong: Handler<'getSource'> = async () => ({ data: { ...source, id: '7' } })
// @ts-expect-error a field the contract lacks
export const leaked: Schema<'SourceRef'> = { id: 1, name: 'Web', password_hash: 'x' }
export const kind: ColumnsOf<'activities'> = { type: 'call' }
// @ts-expect-error a value that the table refuses, such as one that only the contract knows
export const refused: ColumnsOf<'activities'> = { type: 'fax' }
// @ts-expect-error an unknown event
export const event: EventBase = 'lead.created'
`

it('a missing handler is an error of the compiler', () => {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'accord-types-'))
  try {
    const file = join(folder, 'snippet.ts')
    writeFileSync(file, snippet)
    const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
    const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
    const program = ts.createProgram([file], { ...options, noEmit: true, incremental: false, rootDir: root })
    const complaints = ts
      .getPreEmitDiagnostics(program, program.getSourceFile(file))
      .map(({ messageText, start, file }) => {
        const line = file?.getLineAndCharacterOfPosition(start ?? 0).line ?? 0
        return `line ${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
      })
    expect(complaints).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 180_000)
