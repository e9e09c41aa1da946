/** Tools whose input is plain JSON Schema, because its very words matter: clients must see them unchanged. */
import { jsonSchema, type Server } from 'vivarium/server'

const contact = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema; nobody awaits this object.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

export function addSchemaTools(server: Server): void {
  server.tool(
    'json_schema_2020_12_tool',
    { description: 'Takes a contact, described with much of what JSON Schema 2020-12 can say', input: contact },
    args => `Taken: ${Object.keys(args).join(', ')}`,
  )

  server.tool(
    'test_header_parameter',
    {
      description: 'Takes a region that HTTP clients repeat in the header Mcp-Param-Region',
      input: jsonSchema<{ region: string; query?: string }>({
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, query: { type: 'string' } },
        required: ['region'],
      }),
    },
    ({ region }) => `Routed to ${region}`,
  )
}
