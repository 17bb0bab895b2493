// The invitations of a new installation: on request, without the comment, again when time, place or
// participants change, cancelled after the deletion.
import { beforeEach, describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const meeting = {
  type: 'meeting' as const,
  title: 'Visit at Pure Springs',
  comment: 'INTERNAL: discount 5 % at most',
  schedule_from: '2026-07-01T09:00:00Z',
  schedule_to: '2026-07-01T10:00:00Z',
  participants: { users: [1] },
  notify: true,
}

beforeEach(async () => {
  for (const id of [1, 2, 3]) await server.admin.put(`/settings/workflows/${id}`, { is_active: true })
})

const make = (changes: object = {}) => given(server.admin).activity({ ...meeting, ...changes })

/** Returns the subject and the lines of the calendar file of each e-mail that was sent. */
async function sent(): Promise<{ subject: string; lines: string[]; body: string }[]> {
  await server.work()
  const { data } = (await server.admin.get('/emails?sort=id')).body
  return Promise.all(
    data.map(async ({ id, subject, attachments, html }: any) => {
      const { text } = await server.admin.get(`/emails/${id}/attachments/${attachments[0].id}/download`)
      return { subject, lines: text.replaceAll('\r\n ', '').split('\r\n'), body: html }
    }),
  )
}
const subjects = async () => (await sent()).map(({ subject }) => subject)
const put = async (id: number, body: object) =>
  expect((await server.admin.put(`/activities/${id}`, body)).status).toBe(200)
const title = 'Visit at Pure Springs, July 1, 9:00 AM'

describe('the participants of an activity', () => {
  it('get an invitation, a new one for another place, and a cancellation', async () => {
    const { id } = await make()
    await server.work()
    await put(id, { location: 'Room 1' })
    await server.work()
    expect((await server.admin.delete(`/activities/${id}`)).status).toBe(200)
    const mails = await sent()
    expect(mails.map(({ subject }) => subject)).toEqual([title, `Changed: ${title}`, `Cancelled: ${title}`])
    expect(mails.map(({ lines }) => lines.filter((line) => /^(METHOD|SEQUENCE|STATUS|LOCATION)/.test(line)))).toEqual([
      ['METHOD:REQUEST', 'SEQUENCE:1', 'STATUS:CONFIRMED'],
      ['METHOD:REQUEST', 'SEQUENCE:2', 'LOCATION:Room 1', 'STATUS:CONFIRMED'],
      ['METHOD:CANCEL', 'SEQUENCE:3', 'LOCATION:Room 1', 'STATUS:CANCELLED'],
    ])
    // The comment is for colleagues.
    expect(JSON.stringify(mails)).not.toContain('INTERNAL')
  })

  it('are invited again when the deleted activity is restored', async () => {
    const { id } = await make()
    await server.work()
    await server.admin.delete(`/activities/${id}`)
    await server.work()
    expect((await server.admin.post(`/activities/${id}/restore`)).status).toBe(200)
    const mails = await sent()
    expect(mails.map(({ subject }) => subject)).toEqual([title, `Cancelled: ${title}`, title])
    const sequences = mails.map(({ lines }) => Number(lines.find((line) => line.startsWith('SEQUENCE:'))?.slice(9)))
    expect(sequences[2]).toBeGreaterThan(sequences[0] ?? 0)
    expect(sequences[2]).toBeGreaterThanOrEqual(sequences[1] ?? 0)
  })

  it.each([
    ['without a request', { notify: undefined }],
    ['to a note', { type: 'note', schedule_from: undefined, schedule_to: undefined }],
    ['to a meeting of a past day', { schedule_from: '2020-01-01T09:00:00Z', schedule_to: '2020-01-01T10:00:00Z' }],
  ])('get nothing %s', async (_which, changes) => {
    const { id } = await make(changes)
    await put(id, { location: 'Room 1' })
    await server.work()
    await server.admin.delete(`/activities/${id}`)
    expect(await subjects()).toEqual([])
  })

  it.each<[string, object, boolean]>([
    ['another time', { schedule_to: '2026-07-01T11:00:00Z' }, true],
    ['whole days', { is_all_day: true }, true],
    ['another participant', { participants: { users: [] } }, false],
    ['another title', { title: 'Visit' }, false],
    ['another comment', { comment: 'x' }, false],
    ['the end of the work', { is_done: true }, false],
  ])('hear of %s if it concerns them', async (_change, body, isTold) => {
    const { id } = await make()
    await server.work()
    await put(id, body)
    expect(await subjects()).toHaveLength(isTold ? 2 : 1)
  })

  it('get the first invitation when it is requested later', async () => {
    const { id } = await make({ notify: false })
    expect(await subjects()).toEqual([])
    await put(id, { notify: true })
    expect(await subjects()).toEqual([`Changed: ${title}`])
  })

  it('read the days of an activity that takes whole days', async () => {
    await make({ is_all_day: true })
    const [mail] = await sent()
    expect(mail?.subject).toBe('Visit at Pure Springs, July 1')
    expect(mail?.body).toContain('>Wednesday, July 1, 2026</td>')
    expect(mail?.body).not.toContain('July 2')
  })
})
