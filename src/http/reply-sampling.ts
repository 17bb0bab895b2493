// Checks replies against the contract before they are sent: every reply in development, and a
// sample in production.
import type { Call } from '../contract/call.ts'
import type { ReplyChecker } from '../contract/output/reply-check.ts'
import type { Answered } from '../contract/routes.ts'
import { jsonType } from './response.ts'

export interface ReplyCheck {
  checker: ReplyChecker
  /** Called when a reply violates the contract. */
  report: (findings: string[], call: Call) => void
  /** The fraction of replies to check, from 0 to 1. */
  share: number
}

const isSampled = ({ share }: ReplyCheck): boolean => share >= 1 || (share > 0 && Math.random() < share)

/** Checks the status and the media type of a download, but not its bytes. */
export function checkDownload(check: ReplyCheck, call: Call, { body, status, mediaType }: Answered): void {
  if (body === undefined || !isSampled(check)) return
  const findings = check.checker.byteFindings(call.fact, status, mediaType)
  if (findings.length > 0) check.report(findings, call)
}

export function checkReply(check: ReplyCheck, call: Call, status: number, reply: unknown): void {
  if (!isSampled(check)) return
  // Converts the reply to the form that the caller gets: without undefined keys, and with dates as
  // texts.
  const sent: unknown = JSON.parse(JSON.stringify(reply))
  const findings = check.checker.findings(call.fact, status, jsonType, sent)
  if (findings.length > 0) check.report(findings, call)
}
