// The types of calls are those of openapi-fetch with two corrections. A reply has the type of its
// JSON, because the client asks for JSON. A file of a form is a Blob, because openapi-typescript
// gives `format: binary` the type string.

/** A reply with several media types, such as a report as JSON or as a chart. */
type Json<Content> = 'application/json' extends keyof Content ? Pick<Content, 'application/json'> : Content

type JsonResponses<Responses> = {
  [Status in keyof Responses]: Responses[Status] extends { content: infer Content }
    ? Omit<Responses[Status], 'content'> & { content: Json<Content> }
    : Responses[Status]
}

/**
 * The type of a field of a form. The names of the fields decide, because the types of the contract
 * do not distinguish a file from a text.
 */
type FormField<Name, Value> = Name extends 'file'
  ? Value extends string
    ? Blob
    : Value
  : Name extends 'attachments'
    ? Value extends readonly string[]
      ? Blob[]
      : Value
    : Value

type Bodies<Content> = {
  [Media in keyof Content]: Media extends 'multipart/form-data'
    ? { [Name in keyof Content[Media]]: FormField<Name, Content[Media][Name]> }
    : Content[Media]
}

type RequestBody<Body> = Body extends { content: infer Content } ? { content: Bodies<Content> } : Body

type Call<Operation> = {
  [Part in keyof Operation]: Part extends 'responses'
    ? JsonResponses<Operation[Part]>
    : Part extends 'requestBody'
      ? RequestBody<Operation[Part]>
      : Operation[Part]
}

/** Paths of openapi-typescript with corrected operations. */
export type Calls<Paths> = {
  [Path in keyof Paths]: {
    [Method in keyof Paths[Path]]: Method extends 'parameters' ? Paths[Path][Method] : Call<Paths[Path][Method]>
  }
}
