/** The lists of a server, and which capability each belongs to. */
import { listPrompts } from '../features/mcp/prompts/messages.ts'
import { listResources, listResourceTemplates } from '../features/mcp/resources/messages.ts'
import { listTools } from '../features/mcp/tools/messages.ts'

export const lists = {
  tools: { method: listTools, member: 'tools', capability: 'tools' },
  prompts: { method: listPrompts, member: 'prompts', capability: 'prompts' },
  resources: { method: listResources, member: 'resources', capability: 'resources' },
  // Many servers have resources and never heard of templates.
  templates: { method: listResourceTemplates, member: 'resourceTemplates', capability: 'resources', optional: true },
} as const
