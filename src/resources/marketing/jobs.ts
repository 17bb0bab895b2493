// Background jobs of marketing: the daily run of the campaigns, and the jobs that queue and send
// campaign e-mails.
import { DateTime } from 'luxon'
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { today } from '../../kernel/values/format.ts'
import { bounceJob } from './bounces.ts'
import { announceMissed } from './missed.ts'
import { dailyAt } from './occurrence.ts'
import { queueMails } from './queue.ts'
import { processDay } from './run.ts'
import { sendMails } from './sending.ts'
import { sendTest } from './test-send.ts'

/**
 * Starts the campaigns of the current day, and those of the day before when no server ran then.
 * Campaigns of earlier missed days do not run, because their e-mails would arrive too late; they
 * are announced.
 */
export const processCampaigns = defineJob<{ due: string; since?: string }>({
  kind: 'campaigns.process',
  async run(job, { since }) {
    const ctx = { ...job, origin: 'campaign' } as const
    const zone = ctx.services.config.timezone
    const day = today(ctx.time, zone)
    const last = since === undefined ? day : today(new Date(since), zone)
    const before = DateTime.fromISO(day).minus({ days: 1 }).toFormat('yyyy-MM-dd')
    await announceMissed(ctx, { after: last, before })
    await processDay(ctx, last < before ? [before, day] : [day])
  },
})

export const jobs = [processCampaigns, queueMails, sendMails, sendTest, bounceJob]

export const schedules: readonly Schedule[] = [{ name: 'campaign:process', at: dailyAt, job: processCampaigns }]
