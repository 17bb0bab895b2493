// The TTL cache: callers within the period share a value, even while it is computed, and no caller
// gets an expired value.
import { expect, it } from 'vitest'
import { ttlCache } from '../../../src/kernel/runtime/ttl-cache.ts'

const failing = () => Promise.reject(new Error('no'))

it('asks once for as long as an answer holds, then again', async () => {
  const latest = ttlCache<number>(1000)
  let asked = 0
  const ask = async () => ++asked
  const [one, other] = [{}, {}]
  expect(await Promise.all([latest(one, 5000, ask), latest(one, 5000, ask), latest(one, 5999, ask)])).toEqual([1, 1, 1])
  expect(await latest(other, 5999, ask)).toBe(2)
  expect(await latest(one, 6000, ask)).toBe(3)
})

it('asks again when the clock was put back', async () => {
  const latest = ttlCache<string>(1000)
  const subject = {}
  await latest(subject, 5000, async () => 'of the time to come')
  expect(await latest(subject, 4999, async () => 'new')).toBe('new')
})

it('holds a failure like an answer', async () => {
  const latest = ttlCache<string>(1000)
  const subject = {}
  await expect(latest(subject, 0, failing)).rejects.toThrow('no')
  await expect(latest(subject, 999, async () => 'yes')).rejects.toThrow('no')
  expect(await latest(subject, 1000, async () => 'yes')).toBe('yes')
})

it('forgets a failure where it is told to, and no answer that has come since', async () => {
  const latest = ttlCache<string>(1000, { forgetsFailures: true })
  const subject = {}
  await expect(latest(subject, 0, failing)).rejects.toThrow('no')
  expect(await latest(subject, 0, async () => 'yes')).toBe('yes')

  let fail = (_cause: Error): void => undefined
  const late = new Promise<string>((_resolve, reject) => {
    fail = reject
  })
  const slow = latest(subject, 1000, () => late)
  const later = await latest(subject, 2000, async () => 'later')
  fail(new Error('too late'))
  await expect(slow).rejects.toThrow('too late')
  expect([later, await latest(subject, 2000, async () => 'asked again')]).toEqual(['later', 'later'])
})
