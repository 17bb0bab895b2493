// Checks the headers of replies against the contract. A header that the contract declares for any
// operation may be sent only where it is declared. It must be sent where it is required, and must
// match its schema.
import type { ServerResponse } from 'node:http'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { type ContractDocument, resolve } from '../../codegen/read.ts'
import { operationAt } from './schema.ts'

interface Header {
  required?: boolean
  schema?: object
}

interface Checked {
  findings(request: { method: string; url: string }, status: number, headers: Record<string, unknown>): string[]
}

const checkers = new WeakMap<ContractDocument, Checked>()

/** Returns the cached checker of a contract. */
export function headerChecker(document: ContractDocument): Checked {
  const known = checkers.get(document) ?? createChecker(document)
  checkers.set(document, known)
  return known
}

function createChecker(document: ContractDocument): Checked {
  const ajv = new Ajv2020({ strict: false })
  ajvFormats.default(ajv)
  const compiled = new WeakMap<object, ValidateFunction>()
  const fits = (schema: object, value: string): boolean => {
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    return validate(value) === true
  }
  // The origins of the setting ACCORD_CORS_ORIGINS get the headers of CORS everywhere.
  const family = Object.keys(document.components?.headers ?? {}).filter((name) => !name.startsWith('Access-Control-'))
  return {
    findings({ method, url }, status, headers) {
      const [path = ''] = url.split(/[?#]/)
      const place = operationAt(method, path)
      const sent = new Map(Object.entries(headers).filter(([, value]) => value !== undefined))
      if (!sent.has('x-request-id')) return [`${method} ${url} answered ${status} without X-Request-Id.`]
      const operation = place && document.paths?.[place.path]?.[place.method]
      const replies = (operation as { responses?: Record<string, { $ref?: string; headers?: object }> })?.responses
      // The contract does not describe refusals before routing and server failures.
      const reply = resolve(document, replies?.[String(status)])
      if (reply === undefined) {
        const missing = operation && { 409: 'Conflict', 412: 'VersionMismatch' }[status]
        return missing === undefined
          ? []
          : [
              `${method} ${place?.path} answered ${status}, which the contract does not declare. Add to its responses: '${status}': { $ref: '#/components/responses/${missing}' }`,
            ]
      }
      const declared = new Map(
        Object.entries(reply.headers ?? {}).map(([name, header]) => [
          name,
          resolve(document, header as { $ref?: string }) as Header,
        ]),
      )
      const where = `${method} ${place?.path} ${status}`
      return [
        ...family
          .filter((name) => sent.has(name.toLowerCase()) && !declared.has(name))
          .map((name) => `${where} has the header ${name}, which the contract does not declare.`),
        ...[...declared].flatMap(([name, { required = false, schema }]) => {
          const value = sent.get(name.toLowerCase())
          if (value === undefined) return required ? [`${where} lacks the header ${name}.`] : []
          const isRight = schema === undefined || fits(schema, String(value))
          return isRight ? [] : [`${where} has the header ${name}: ${value}, which its schema does not allow.`]
        }),
      ]
    },
  }
}

/**
 * Returns the findings for a sent response. Parses the sent text, because Node stores headers that
 * were passed to `writeHead` only there.
 */
export function sentFindings(document: ContractDocument, response: ServerResponse): string[] {
  const { _header: head } = response as ServerResponse & { _header: string }
  const lines = head.split('\r\n').slice(1).filter(Boolean)
  const headers = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    line.slice(line.indexOf(':') + 2),
  ])
  const { method = '', url = '' } = response.req
  return headerChecker(document).findings({ method, url }, response.statusCode, Object.fromEntries(headers))
}
