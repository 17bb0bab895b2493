// The table of version 1 and its README list the same routes. Without its setting, no route exists.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { operations } from '../../../src/contract/operations.gen.ts'
import { routesOf } from '../../../src/http/compat-v1/compat-v1.ts'
import { fieldNames } from '../../../src/http/compat-v1/names.ts'
import { rows } from '../../../src/http/compat-v1/rows.ts'
import { startServer } from '../../support/app.ts'
import { contract } from '../../support/contract.ts'
import { rowFor, rowNames } from '../../support/version1.ts'

const guide = readFileSync('src/http/compat-v1/README.md', 'utf8')

/** The routes of the original API, by its groups. */
const published = `
POST /login, POST /forgot-password, DELETE /logout, GET /get, PUT /update
GET /leads, GET /leads/1, POST /leads, PUT /leads/1, DELETE /leads/1, POST /leads/mass-update
POST /leads/mass-destroy, PUT /leads/attributes/edit/1, PUT /leads/stage/edit/1, PUT /leads/product/1
DELETE /leads/product/1, GET /leads/kanban/look-up, GET /leads/search, GET /leads/get, GET /leads/get/1
POST /leads/1/tags, DELETE /leads/1/tags, POST /leads/1/emails, DELETE /leads/1/emails
GET /leads/1/activities, DELETE /leads/1/quotes, DELETE /leads/1/quotes/2
GET /quotes, GET /quotes/1, POST /quotes, PUT /quotes/1, DELETE /quotes/1, POST /quotes/mass-destroy
GET /quotes/search
GET /mails, GET /mails/1, POST /mails, PUT /mails/1, DELETE /mails/1, POST /mails/mass-update
POST /mails/mass-destroy, GET /mails/attachment-download/1, POST /mails/1/tags, DELETE /mails/1/tags
GET /activities, GET /activities/1, POST /activities, PUT /activities/1, DELETE /activities/1
GET /activities/file-download/1, POST /activities/mass-update, POST /activities/mass-destroy
GET /contacts/persons, GET /contacts/persons/search, GET /contacts/persons/1, POST /contacts/persons
PUT /contacts/persons/1, DELETE /contacts/persons/1, POST /contacts/persons/mass-destroy
POST /contacts/persons/1/tags, DELETE /contacts/persons/1/tags, GET /contacts/persons/1/activities
GET /contacts/organizations, GET /contacts/organizations/1, POST /contacts/organizations
PUT /contacts/organizations/1, DELETE /contacts/organizations/1
POST /contacts/organizations/mass-destroy
GET /products, POST /products, GET /products/1, PUT /products/1, GET /products/search
GET /products/1/warehouses, POST /products/1/inventories, POST /products/1/inventories/2
DELETE /products/1, POST /products/mass-destroy
GET /settings/groups, POST /settings/groups, GET /settings/groups/1, PUT /settings/groups/1
DELETE /settings/groups/1, GET /settings/marketing/events, POST /settings/marketing/events
GET /settings/marketing/events/1, PUT /settings/marketing/events/1, DELETE /settings/marketing/events/1
POST /settings/marketing/events/mass-destroy, GET /settings/marketing/campaigns
POST /settings/marketing/campaigns, GET /settings/marketing/campaigns/1
PUT /settings/marketing/campaigns/1, DELETE /settings/marketing/campaigns/1
POST /settings/marketing/campaigns/mass-destroy
GET /settings/roles, POST /settings/roles, GET /settings/roles/1, PUT /settings/roles/1
DELETE /settings/roles/1, GET /settings/users, POST /settings/users, GET /settings/users/1
PUT /settings/users/1, DELETE /settings/users/1, GET /settings/users/search
POST /settings/users/mass-update, POST /settings/users/mass-destroy
GET /settings/pipelines, GET /settings/pipelines/1, POST /settings/pipelines
PUT /settings/pipelines/1, DELETE /settings/pipelines/1, GET /settings/sources, POST /settings/sources
GET /settings/sources/1, PUT /settings/sources/1, DELETE /settings/sources/1, GET /settings/types
POST /settings/types, GET /settings/types/1, PUT /settings/types/1, DELETE /settings/types/1
GET /settings/attributes, POST /settings/attributes, GET /settings/attributes/1
PUT /settings/attributes/1, DELETE /settings/attributes/1, POST /settings/attributes/mass-destroy
GET /settings/attributes/lookup/users, GET /settings/attributes/lookup-entity/users
POST /settings/attributes/mass-update
GET /settings/webhooks, POST /settings/webhooks, GET /settings/webhooks/1, PUT /settings/webhooks/1
DELETE /settings/webhooks/1, GET /settings/email-templates, POST /settings/email-templates
GET /settings/email-templates/1, PUT /settings/email-templates/1, DELETE /settings/email-templates/1
GET /settings/warehouses, GET /settings/warehouses/search, PUT /settings/warehouses/1
POST /settings/warehouses, GET /settings/warehouses/view/1, DELETE /settings/warehouses/1
POST /settings/warehouses/1/tags, DELETE /settings/warehouses/1/tags
GET /settings/warehouses/1/activities, GET /settings/locations/search, POST /settings/locations
PUT /settings/locations/1, DELETE /settings/locations/1
GET /settings/workflows, POST /settings/workflows, GET /settings/workflows/1
PUT /settings/workflows/1, DELETE /settings/workflows/1
GET /settings/tags, POST /settings/tags, GET /settings/tags/1, PUT /settings/tags/1
GET /settings/tags/search, DELETE /settings/tags/1, POST /settings/tags/mass-destroy
GET /settings/web-forms, POST /settings/web-forms, GET /settings/web-forms/1, PUT /settings/web-forms/1
DELETE /settings/web-forms/1
GET /settings/data-transfer/imports, GET /settings/data-transfer/imports/1
POST /settings/data-transfer/imports, PUT /settings/data-transfer/imports/1
DELETE /settings/data-transfer/imports/1, GET /settings/data-transfer/imports/validate/1
GET /settings/data-transfer/imports/start/1, GET /settings/data-transfer/imports/stats/1
GET /settings/data-transfer/imports/stats/1/processed
GET /settings/data-transfer/imports/download-sample/leads
GET /settings/data-transfer/imports/download-error-report/1
POST /configuration, POST /configuration/general
`
  .trim()
  .split(/\n|, /)

describe('the table', () => {
  it('has the routes of the guide, with their operations', () => {
    const listed = [...guide.matchAll(/^\| `(\/[^`]+)` \| (.+) \|$/gm)].flatMap(([, path, cells = '']) =>
      cells.split(', ').map((cell) => `${cell.replace(' ', ` ${path} `)}`),
    )
    expect(listed.sort()).toEqual(rows.map(({ method, path, operation }) => `${method} ${path} ${operation}`).sort())
  })

  it('has every route that the API of the model publishes, apart from those that the guide names', () => {
    const found = published.map((route) => [route, rowFor(...(route.split(' ') as [string, string]))])
    expect(found.filter(([, row]) => row === undefined)).toEqual([])
    const known = new Set(found.map(([, row]) => row))
    // POST /logout ends a session; the API of the model does not publish it.
    expect(rowNames.filter((name) => !known.has(name))).toEqual(['POST /logout'])
  })

  it('has one row for a method of a path, and operations of the contract alone', () => {
    expect([...routesOf(rows).values()].flatMap((byMethod) => [...byMethod.values()]).length).toBeGreaterThanOrEqual(
      rows.length,
    )
    expect(rows.filter(({ operation }) => operations[operation] === undefined)).toEqual([])
    expect(() => routesOf([...rows, ...rows.slice(0, 1)])).toThrow('twice')
  })
})

describe('the names', () => {
  it('are those of fields of the contract, which has no other field of that name in the record', () => {
    const { schemas } = contract.components as { schemas: Record<string, { properties?: object }> }
    for (const [schema, names] of Object.entries(fieldNames))
      for (const [canonical, own] of Object.entries(names)) {
        const properties = Object.keys(schemas[schema]?.properties ?? {})
        const others = [own].flat().filter((name) => name !== canonical)
        expect(
          properties.filter((name) => others.includes(name)),
          schema,
        ).toEqual([])
      }
    const types = Object.keys(fieldNames).filter((schema) => !/^Included|(Create|Update)$/.test(schema))
    const known = types.map((schema) => Object.keys(fieldNames[schema] ?? {}))
    expect(types.map((schema) => Object.keys(schemas[schema]?.properties ?? {}))).toEqual(
      known.map((names) => expect.arrayContaining(names)),
    )
  })
})

describe('without the setting', () => {
  it('a path of version 1 is a 404 like any unknown path', async () => {
    const server = await startServer()
    const found = await server.admin.get('//api/v1/leads')
    const unknown = await server.admin.get('//api/v2/leads')
    const plain = ({ instance: _instance, request_id: _id, ...body }: any) => body
    expect([found.status, plain(found.body)]).toEqual([404, plain(unknown.body)])
    await server.close()
  })
})
