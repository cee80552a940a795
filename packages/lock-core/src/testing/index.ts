export type { BackendAccess, ContractCase, StoreCapability, StoreContractOptions } from "./contract-case.ts";
export { ManualClock } from "./manual-clock.ts";
export { storeContract } from "./store-contract.ts";
