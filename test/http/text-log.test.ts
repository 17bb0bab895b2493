// The log at a terminal: one readable line for each entry, without control characters from callers.
import { describe, expect, it } from 'vitest'
import { textLog } from '../../src/http/text-log.ts'

const time = new Date(2026, 2, 1, 9, 30, 5).getTime()
const text = textLog(false)
const lineOf = (fields: object): string =>
  text(`${JSON.stringify({ level: 30, time, pid: 1, hostname: 'h', ...fields })}\n`)
const request = { operation: 'listLeads', method: 'GET', path: '/api/admin/leads', status: 200, ms: 12, bytes: 900 }

describe('a line of the log at a terminal', () => {
  it('of a request says what was asked and answered', () => {
    expect(lineOf({ ...request, request_id: 'r-1', user: 1, token: null, msg: 'answered' })).toBe(
      '09:30:05 GET    /api/admin/leads 200 12 ms listLeads user=1\n',
    )
  })

  it('of a refused request has its code and its id', () => {
    const refused = { ...request, operation: 'none', status: 404, code: 'not_found', request_id: 'r-1' }
    expect(lineOf(refused)).toBe('09:30:05 GET    /api/admin/leads 404 12 ms code=not_found request_id=r-1\n')
  })

  it('of an event has its level, its text and its fields', () => {
    expect(lineOf({ level: 40, msg: 'Careful.', listed: ['a', 'b'] })).toBe(
      '09:30:05 warn  Careful. listed=["a","b"]\n',
    )
  })

  it('of an error has its stack and its causes', () => {
    const cause = { type: 'Error', message: 'full', stack: '' }
    expect(
      lineOf({ level: 50, msg: 'Failed.', err: { type: 'E', message: 'm', stack: 'E: m\n    at x', cause } }),
    ).toBe('09:30:05 error Failed.\n    E: m\n        at x\n    Error: full\n')
  })

  it('cannot move the cursor, color the terminal or begin another line', () => {
    const line = lineOf({ msg: 'a\u001b[2Jb\nc\u0007', path: '\u001b]0;title\u0007', other: '\r\u009b31m' })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not be there.
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })

  it('is colored when the terminal is, and stays as it is when it is no JSON', () => {
    const { FORCE_COLOR: before } = process.env
    process.env.FORCE_COLOR = '1'
    expect(textLog(true)(`${JSON.stringify({ level: 50, time, msg: 'Failed.' })}\n`)).toContain('\u001b[31m')
    expect(lineOf({ msg: 'Failed.' })).not.toContain('\u001b')
    if (before === undefined) delete process.env.FORCE_COLOR
    else process.env.FORCE_COLOR = before
    expect(text('not JSON\n')).toBe('not JSON\n')
    expect(text('null\n')).toBe('null\n')
  })
})
