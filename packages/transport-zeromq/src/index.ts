/** ZeroMQ transports for Purser. */
export * from "./Endpoint.ts"
export * from "./ReqRep.ts"
export * from "./SocketSettings.ts"
export * from "./ZmqMetrics.ts"
export * from "./ZmqSocket.ts"
export * from "./ZmqTransport.ts"
