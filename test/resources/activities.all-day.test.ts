// Activities that take whole days: in the API, the calendar feed and invitations.
import { describe, expect, it } from 'vitest'
import { startServer } from '../support/app.ts'
import { useServer } from '../support/using.ts'

const server = useServer({ config: { timezone: 'Europe/Berlin', mailDomain: 'crm.example.com' } })

const fair = { type: 'meeting', title: 'Fair', is_all_day: true }
const make = async (from: string, to: string, changes: object = {}) => {
  const { status, text, body } = await server.admin.post('/activities', {
    ...fair,
    schedule_from: from,
    schedule_to: to,
    ...changes,
  })
  if (status !== 201) throw new Error(text)
  return body.data
}
const timesOf = ({ schedule_from, schedule_to, is_all_day }: any) => [schedule_from, schedule_to, is_all_day]

describe('an activity of whole days', () => {
  it.each([
    ['one day, as a date', '2026-03-10', '2026-03-10', '2026-03-10', '2026-03-11'],
    ['one day, by its times', '2026-03-10T09:00:00+01:00', '2026-03-10T17:00:00+01:00', '2026-03-10', '2026-03-11'],
    ['two days', '2026-03-10', '2026-03-12', '2026-03-10', '2026-03-12'],
    ['a day with one hour less', '2026-03-29', '2026-03-29', '2026-03-29', '2026-03-30'],
  ])('begins and ends with its days: %s', async (_, from, to, first, after) => {
    const activity = await make(from, to)
    const berlin = (day: string): string => {
      const isSummer = day >= '2026-03-30'
      return new Date(`${day}T00:00:00${isSummer ? '+02:00' : '+01:00'}`).toISOString()
    }
    expect(timesOf(activity)).toEqual([berlin(first), berlin(after), true])
    const back = await server.admin.put(`/activities/${activity.id}`, activity)
    expect(timesOf(back.body.data)).toEqual(timesOf(activity))
  })

  it('becomes one, and no longer is one, by a change', async () => {
    const activity = await make('2026-03-10T09:00:00Z', '2026-03-10T10:00:00Z', { is_all_day: false })
    expect(activity.is_all_day).toBe(false)
    const put = async (changes: object) => (await server.admin.put(`/activities/${activity.id}`, changes)).body.data
    expect(timesOf(await put({ is_all_day: true }))).toEqual([
      '2026-03-09T23:00:00.000Z',
      '2026-03-10T23:00:00.000Z',
      true,
    ])
    const times = { schedule_from: '2026-03-11T09:00:00.000Z', schedule_to: '2026-03-11T10:00:00.000Z' }
    expect(timesOf(await put({ ...times, is_all_day: false }))).toEqual([...Object.values(times), false])
  })

  it('is a whole day in the calendar', async () => {
    await make('2026-03-10', '2026-03-12')
    const { text } = await server.admin.get('/activities/calendar.ics')
    expect(text).toMatch(/DTSTART;VALUE=DATE:20260310\r\nDTEND;VALUE=DATE:20260312\r\n/)
  })

  it('keeps others from meeting on that day', async () => {
    await make('2026-03-10', '2026-03-10')
    const times = { schedule_from: '2026-03-10T20:00:00.000Z', schedule_to: '2026-03-10T21:00:00.000Z' }
    expect((await server.admin.post('/activities', { ...fair, is_all_day: false, ...times })).status).toBe(409)
    const later = { schedule_from: '2026-03-10T23:00:00.000Z', schedule_to: '2026-03-10T23:30:00.000Z' }
    expect((await server.admin.post('/activities', { ...fair, is_all_day: false, ...later })).status).toBe(201)
  })

  it.each([
    ['9999-12-31T23:30:00Z', '9999-12-31T23:30:00Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ])('is refused when its days cannot be stored: %s', async (schedule_from, schedule_to) => {
    const { status, body } = await server.admin.post('/activities', { ...fair, schedule_from, schedule_to })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['schedule_to']])
  })

  it('ends at the start of a day that begins at one o’clock', async () => {
    const cairo = await startServer({ config: { timezone: 'Africa/Cairo' } })
    const days = { schedule_from: '2026-04-24', schedule_to: '2026-04-24' }
    const made = (await cairo.admin.post('/activities', { ...fair, ...days })).body.data
    expect(made.schedule_to).toBe(new Date('2026-04-25T00:00:00+03:00').toISOString())
    const put = (await cairo.admin.put(`/activities/${made.id}`, { title: 'Other' })).body.data
    expect(timesOf(put)).toEqual(timesOf(made))
    await cairo.close()
  })

  it('is not for notes, which have no times', async () => {
    const note = await server.admin.post('/activities', { type: 'note', comment: 'x', is_all_day: true })
    expect(note.body.data.is_all_day).toBe(false)
  })
})
