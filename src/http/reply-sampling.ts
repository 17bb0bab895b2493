// Checks replies against the contract before they are sent: all of them in development, a sample in
// production.
import type { Call } from '../contract/backend.ts'
import type { ReplyChecker } from '../contract/output/reply-check.ts'
import type { Answered } from '../contract/routes.ts'
import { json } from './response.ts'

export interface ReplyCheck {
  checker: ReplyChecker
  /** Called with sentences when a reply breaks the contract. */
  report: (findings: string[], call: Call) => void
  /** The share of replies that is checked, from 0 to 1. */
  share: number
}

const isSampled = ({ share }: ReplyCheck): boolean => share >= 1 || (share > 0 && Math.random() < share)

/** For a download: its status and media type, not its bytes. */
export function checkDownload(check: ReplyCheck, call: Call, { body, status, mediaType }: Answered): void {
  if (body === undefined || !isSampled(check)) return
  const findings = check.checker.byteFindings(call.fact, status, mediaType)
  if (findings.length > 0) check.report(findings, call)
}

export function checkReply(check: ReplyCheck, call: Call, status: number, reply: unknown): void {
  if (!isSampled(check)) return
  // The reply as the caller gets it: without undefined keys, with dates as text.
  const sent: unknown = JSON.parse(JSON.stringify(reply))
  const findings = check.checker.findings(call.fact, status, json, sent)
  if (findings.length > 0) check.report(findings, call)
}
