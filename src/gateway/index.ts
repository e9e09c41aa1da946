/** `vivarium/gateway`: one endpoint in front of many servers. Only public exports. */
import '../core/required-node.ts'

export type { ServerOption } from '../host/servers/entry.ts'
export { type GatewayFileOptions, readGatewayFile } from './config/load.ts'
export type { FoundServer, GatewayConfig } from './config/read.ts'
export { createGateway } from './create.ts'
export type { Gateway, GatewayOptions, LaunchChange, OfferedName, Reloaded, UpstreamStatus } from './gateway.ts'
export type { ShareOptions } from './shares.ts'
export type { Approval, GatewayNotice } from './trust/approvals.ts'
export type { GatewayCall } from './trust/call-wrapper.ts'
export type { UpstreamAuth } from './upstreams/auth.ts'
export type { GatewayServer } from './upstreams/entry.ts'
