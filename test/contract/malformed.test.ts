// A body that is not valid JSON: the error says where and why, and repeats nothing of the body,
// which may be a secret.
import { expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

it.each([
  ['{"title": "a",}', ' at line 1, column 15: expected double-quoted property name.'],
  ['{\n  "title": "a"\n  "lead_value": 1\n}', " at line 3, column 3: expected ',' or '}' after property value."],
  ["{'title': 'a'}", " at line 1, column 2: expected property name or '}'."],
  ['{"title": "a"', " at line 1, column 14: expected ',' or '}' after property value."],
  ['{"title":', ': it ends too early.'],
  ['{"title": "a}', ' at line 1, column 14: unterminated string.'],
  ['{"title": "a"}}', ' at line 1, column 15: unexpected non-whitespace character.'],
  ['{"title": "a\nb"}', ' at line 1, column 13: bad control character in string literal.'],
  ['{"title": undefined}', '.'],
  ['hunter2', '.'],
])('%j', async (body, rest) => {
  const reply = await server.inject({
    method: 'POST',
    url: '/api/admin/leads',
    headers: { authorization: `Bearer ${server.admin.token}`, 'content-type': 'application/json' },
    payload: body,
  })
  expect([reply.statusCode, reply.json().detail]).toEqual([400, `The body is not valid JSON${rest}`])
})
