package support

var energy = desk{
	name: "brightvale",
	intro: "You are the customer assistant of Brightvale Energy, a supplier of electricity and heat pump tariffs to households. " +
		"Use plain words and show each calculation in one line. Never guess a meter reading. " +
		"If a customer smells gas or sees sparks, tell them to leave, not to touch switches, and to call the network operator on 0800 555 0199. " +
		"People who can't pay are offered a plan before any mention of a reminder fee. The handbook follows.",
	places: []string{"Alder Street 14", "the flat above the bakery", "Quarry Road 3", "our allotment house", "the new building at the canal"},
	topics: []topic{
		{
			title: "Meter readings",
			handbook: "Readings are due once a year, in the fortnight before the invoice, and may be sent at any time in the portal or by photograph. Two-rate meters have the registers 1.8.1 for the day and 1.8.2 for the night. Digits after the comma, or in red, are left out. " +
				"Without a reading the usage is estimated from last year and the weather; an estimate is replaced by a later reading without charge, up to three years back. Smart meters send their values by themselves, and the customer sees quarter hours in the portal on the next day.",
			asks: []string{
				"My meter at {place} shows several numbers in turn. Which of them do you need from me?",
				"You estimated my usage although I sent a reading on {day}. Can that be corrected?",
			},
			answer: "Please send the value beside 1.8.1 for the day and, if there is one, beside 1.8.2 for the night, without the digits after the comma. A photograph of the display is fine too. An estimate is replaced as soon as a reading is there, without charge and up to three years back, so you get a corrected invoice for {place} within ten days.",
			follow: "The display shows 1.8.1 with 0{n}418 and 1.8.2 with 0{n}207. The last invoice has much smaller values.",
			reply:  "Thank you. Before I enter them: please compare the meter's number with the one on your invoice, since meters of neighbours are easily mixed up in a cellar. If the numbers agree, I enter both values and explain the difference month by month.",
		},
		{
			title: "Monthly payments",
			handbook: "The monthly payment is a twelfth of the expected yearly cost. It can be changed in the portal once a month, by up to 20 percent down and without limit up. After an invoice it is set anew. A credit of more than 25.00 is paid out within two weeks, a smaller one is set off. " +
				"Customers who can't pay are offered up to twelve rates without interest; no reminder fee is charged during the plan. Disconnection needs two letters, four weeks and a check for hardship.",
			asks: []string{
				"My monthly payment went up by {n} euros. My usage hasn't changed, so why?",
				"I can't pay the final invoice of this year at once. What can we do?",
			},
			answer: "The payment is a twelfth of what we expect for the year, so it follows the price even if your usage stays the same. You can lower it by up to 20 percent in the portal, once a month, though the difference then comes with the invoice. If an invoice is too much at once, I can spread it over up to twelve months without interest, and no reminder fee is charged meanwhile.",
			follow: "Twelve rates would help me a lot. Does that affect my contract or my credit rating?",
			reply:  "No: a plan that is kept isn't reported to anyone and the contract goes on unchanged. You get a letter with the twelve dates; if one is difficult, tell us before it and we move it once.",
		},
		{
			title: "Moving house",
			handbook: "A move is announced up to six weeks ahead and at the latest two weeks after. The contract goes along if we supply the new address, else it ends with the day of the handover. Needed are the new address, the meter's number there, the date and both readings. " +
				"A reading at the handover, signed by both sides, settles all disputes. Whoever moves in without a contract is supplied by the local default supplier, as a rule at a higher price, and can leave it within two weeks.",
			asks: []string{
				"I'm moving from {place} at the end of the month. What do you need from me, and does my tariff go along?",
				"The previous tenant of {place} says that she never had a contract with you. Who pays for {n} weeks without one?",
			},
			answer: "Please send the new address, the number of the meter there, the date of the handover and both readings; a reading signed by both sides settles any later dispute. The contract goes along if we supply the new address, otherwise it ends on that day. Usage without a contract is billed by the local default supplier to whoever lived there, and it can be left within two weeks.",
		},
		{
			title: "Solar feed-in",
			handbook: "Owners of solar panels of up to 30 kW sell what they don't use. The operator of the network pays the fixed rate of the year of commissioning, for 20 years; we offer the market tariff besides, which follows the hourly price and never goes below zero. The meter is replaced by one that counts both ways, at no cost. " +
				"Balcony panels of up to 800 watts only need to be registered in the public register; they get no payment, and an old meter may run backwards for four months at most.",
			asks: []string{
				"We will have {n} panels on the roof of {place} from spring. Who pays us for what we feed in?",
				"I bought a balcony panel. Do I need a new meter for it, and do I have to tell you?",
			},
			answer: "For a roof of up to 30 kW the network operator pays the fixed rate of the year of commissioning for 20 years; with our market tariff you get the hourly price in its place, which never goes below zero. The meter is replaced by one that counts both ways, free of charge. A balcony panel of up to 800 watts you only enter in the public register, and the meter is exchanged within four months.",
			follow: "Which of the two is better for us, if nobody is at home during the day?",
			reply:  "If you feed in most at noon, the fixed rate is the safer one, since hourly prices are lowest just then. The market tariff pays off with a battery that sells in the evening. You may change between them at the beginning of each month.",
		},
		{
			title: "Heat pump tariff",
			handbook: "The heat pump tariff is 24 percent below the household tariff and needs a meter of its own, or a smart meter with a controllable connection. The network operator may throttle the pump to 4.2 kW for at most two hours a day; in return the network fee is reduced by 160.00 a year. " +
				"A buffer tank or a well-insulated house bridges these hours. Charging stations for cars can share the connection. The change takes four to eight weeks, because the operator has to agree.",
			asks: []string{
				"We heat {place} with a pump that uses about {n}00 kWh in a month. Is the special tariff worth it?",
				"Is it true that you can switch off my heating in winter?",
			},
			answer: "The tariff is 24 percent below the household tariff, and the network fee falls by 160.00 a year, against which stands the price of a second meter if you have no smart one. Nobody switches the heating off: the network operator may hold the pump at 4.2 kW for at most two hours a day, which a buffer tank or a well-insulated house bridges. From about 3,000 kWh a year on it is worth it as a rule.",
			follow: "And our car's charging station, can it run over the same connection?",
			reply:  "Yes, both can share the controllable connection and the tariff. The operator then divides the 4.2 kW between them, and most stations let you set that the house goes first.",
		},
		{
			title: "Price changes and ending a contract",
			handbook: "Prices are fixed for 12 months from the beginning of supply. A change is announced six weeks ahead by letter or mail with the old and the new price side by side; the customer may then end the contract to the day of the change. Otherwise it runs on from month to month after the first year, with four weeks' notice. " +
				"The new supplier can give notice on the customer's behalf. The final invoice comes within six weeks of the end and needs a reading of the last day.",
			asks: []string{
				"I got a letter of {day} about a new price. Can I leave before it takes effect?",
				"How do I end the contract for {place}? My new supplier says that they do everything.",
			},
			answer: "Yes, with a change of price you may end the contract to the very day on which the new price begins, even within the first year. Your new supplier can give notice for you, so you needn't do anything but read the meter on the last day. The final invoice for {place} comes within six weeks, and a credit is paid out with it.",
		},
	},
}
