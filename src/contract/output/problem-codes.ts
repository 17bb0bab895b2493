// The table of problem codes. Each entry has the status, the default detail, and the
// advice for the page of error codes.

export const problemCodes = {
  merged: [308, 'The record was merged into another one.', 'Send the request to the address in Location.'],
  malformed_json: [400, 'The body is not a JSON object.', 'Send one JSON object, in UTF-8.'],
  malformed_request: [
    400,
    'The request could not be read.',
    'Check percent-encoding, query string length and headers.',
  ],
  unauthenticated: [
    401,
    'No valid bearer token was sent. Send `Authorization: Bearer <token>`.',
    'Sign in with POST /api/admin/login for a token; other headers, such as `X-Api-Key`, are not read.',
  ],
  invalid_credentials: [401, 'These credentials do not match our records.', 'Check e-mail address and password.'],
  stateful_domain_mismatch: [
    401,
    'Signing in from this host is not allowed.',
    'Add the host to ACCORD_STATEFUL_DOMAINS, or sign in from one that is listed.',
  ],
  account_inactive: [401, 'This account is not active.', 'Ask an administrator to activate it.'],
  forbidden: [403, 'You may not do this.', '`required` names the permission or token ability that is missing.'],
  csrf_mismatch: [
    403,
    'The CSRF token is missing or wrong.',
    'Send the value of the XSRF-TOKEN cookie in the X-XSRF-TOKEN header.',
  ],
  event_vetoed: [403, 'A listener refused this change.', 'The detail is the reason the listener gave.'],
  not_found: [404, 'Not found.', 'There is no such path or record, or none you may see.'],
  method_not_allowed: [405, 'This path does not know this method.', 'The Allow header lists the methods it knows.'],
  unique_violation: [409, 'A value that must be unique is taken.', '`conflicts` names the record that has it.'],
  in_use: [409, 'The record is in use.', '`conflicts` names the first 20 records that refer to it.'],
  state_conflict: [409, 'Not possible in the present state.', 'Read the record again and see what it allows.'],
  schedule_conflict: [
    409,
    'The meeting overlaps another one.',
    '`conflicts` names it; set allow_overlap to accept it.',
  ],
  protected: [409, 'The record is protected.', 'It is needed by the system or by yourself.'],
  idempotency_in_flight: [
    409,
    'The first request with this Idempotency-Key is not finished.',
    'Send the request again after Retry-After seconds: it gets the first answer.',
  ],
  version_mismatch: [
    412,
    'The record has changed since you read it.',
    'Read it again and repeat the change with its new ETag.',
  ],
  payload_too_large: [
    413,
    'The body is too large.',
    'Send at most 1 MiB and 10,000 values; without a credential 128 KiB and 1,000; of files at most 25 MiB each.',
  ],
  unsupported_media_type: [415, 'The body has a media type this operation does not take.', 'Send application/json.'],
  range_not_satisfiable: [
    416,
    'The range begins behind the end.',
    'Content-Range says how many bytes there are; ask for some of them.',
  ],
  validation_failed: [422, 'The request is not valid.', '`errors` lists every refused field.'],
  mass_failed: [422, 'None of the records was changed.', '`failed` says why, record by record.'],
  idempotency_key_reused: [
    422,
    'This Idempotency-Key was used with another request.',
    'Use a new key for a new request.',
  ],
  query_too_costly: [
    422,
    'No index serves this query, and it would read more than 200,000 records.',
    'Add a condition by id, or by a text it equals or starts with, to the outermost `where`, or send `q`.',
  ],
  rate_limited: [429, 'Too many requests.', 'Wait for as many seconds as Retry-After says.'],
  internal_error: [500, 'Something went wrong on our side.', 'Report the request id.'],
  unavailable: [
    503,
    'The server cannot take this request at the moment.',
    'Wait for as many seconds as Retry-After says.',
  ],
} as const satisfies Record<string, readonly [status: number, detail: string, advice: string]>

export type ProblemCode = keyof typeof problemCodes

/** The standard reason phrases of HTTP statuses. */
export const titles: Readonly<Record<number, string>> = {
  308: 'Permanent Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  416: 'Range Not Satisfiable',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}
