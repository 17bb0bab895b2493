// The language of persons: stored as a canonical tag, filtered, sorted, exported and imported.
import { describe, expect, it } from 'vitest'
import { importing } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const people = '/contacts/persons'

describe('the language of a person', () => {
  it('is a tag in its canonical form, and filters ignore the case', async () => {
    for (const language of ['de_de', 'FR-ca', 'xx', null]) {
      const { status } = await server.admin.post(people, { name: `In ${language}`, language })
      expect(status).toBe(201)
    }
    const named = async (query: string) =>
      (await server.admin.get(`${people}?sort=language&${query}`)).body.data.map((each: any) => each.language)
    expect(await named('language=DE-de,fr-CA')).toEqual(['de-DE', 'fr-CA'])
    expect(await named('language[null]=true')).toEqual([null])
    expect(await named('language[not]=xx&language[null]=false')).toEqual(['de-DE', 'fr-CA'])
    const { text } = await server.admin.get(`${people}/export`)
    expect(text).toMatch(/fr-CA/)
  })

  it('is imported, in any form of the tag, and an invalid one is an error of its row', async () => {
    const file = 'name,language\nErika,de_AT\nMarie,fr\nJo,\nEvil,Deutsch!'
    const { errors_count } = await importing(server.admin).validate('persons', file)
    expect(errors_count).toBe(1)
    await importing(server.admin).run('persons', 'name,language\nErika,de_AT\nMarie,fr\nJo,')
    const { body } = await server.admin.get(`${people}?sort=id`)
    expect(body.data.map((each: any) => each.language)).toEqual(['de-AT', 'fr', null])
  })

  it.each(['Deutsch!', 'de-1996-1996', '-', 'd'])('is not %j', async (language) => {
    const { status, body } = await server.admin.post(people, { name: 'Ada', language })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['language']])
  })
})
