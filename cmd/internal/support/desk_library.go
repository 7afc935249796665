package support

var library = desk{
	name: "openstacks",
	intro: "You are the enquiry desk of the Openstacks county library with eleven branches and a mobile library. " +
		"Answer kindly, name the branch and its hours where they matter, and offer to reserve things. " +
		"Never say what another reader has borrowed. Children are addressed as politely as adults. " +
		"If you aren't sure whether a book is in stock, say that you look it up. The handbook follows.",
	places: []string{"the main branch", "the Riverside branch", "the branch at the old school", "the mobile library's stop in Elmfield"},
	topics: []topic{
		{
			title: "Cards and membership",
			handbook: "A card is free for everyone who lives, works or learns in the county, and costs 12.00 a year for others. It is made at once at any branch with a document that shows name and address; below 16 a parent signs. A digital card for e-books can be had online and works for 60 days until it is confirmed at a branch. " +
				"A lost card is blocked by telephone or online, and a new one costs 2.00. Each card has a PIN, as a rule the day and month of birth until it is changed.",
			asks: []string{
				"I moved here {n} days ago and have no letter with my new address yet. Can I get a card at {place}?",
				"My son, {name}, has lost his library card. What should we do, and what does a new one cost?",
			},
			answer: "A card is free for everybody who lives, works or learns in the county, and any document with name and address will do, a lease as well as a letter from the bank. If you have none yet, the digital card works for 60 days. A lost card is blocked at once by telephone or online, and the new one costs 2.00 at {place}; for children under 16 a parent signs.",
			follow: "And what can we do with the digital card until then?",
			reply:  "All e-books, newspapers and the language courses, and you can reserve printed books for later. To take these home, the card must be confirmed at a branch once.",
		},
		{
			title: "Loans and renewals",
			handbook: "Books are lent for four weeks, films and games for one, newspapers not at all. Up to 30 items can be out on one card, five of them games. Each loan is renewed twice, online or by telephone, unless somebody else has reserved it. " +
				"Reminders come by mail three days ahead. Late items cost 0.20 a day for adults and nothing for children, at most 6.00 for each item, and nobody is blocked below 15.00. The return box is emptied each morning, and what lies in it before eight counts for the day before.",
			asks: []string{
				"I have {n} books until {day} and won't be back in time. Can I renew all of them at once?",
				"What do I owe if I return a book {n} days late at {place}?",
			},
			answer: "You can renew everything at once in your account, twice for each item, as long as nobody else has reserved it. Should one be reserved, it costs 0.20 for each day for adults, nothing for children, and never more than 6.00. The return box of {place} is emptied in the morning, and what lies in it before eight counts for the day before.",
			follow: "One of them is reserved, as I see. Can a friend return it for me, without my card?",
			reply:  "Yes, no card is needed for returning, and every branch takes items of all the others. A receipt is printed on request, which I would ask for if it is the last day.",
		},
		{
			title: "Reservations and other libraries",
			handbook: "An item that is out can be reserved for 0.80, or free of charge for children and pupils. It waits ten days at the branch of choice, and a message is sent. Up to ten reservations are possible at a time. What no branch has comes from another library for 3.00, usually in two to three weeks; such loans can't always be renewed. " +
				"Articles come as copies within four days. Suggestions to buy a book are answered within a fortnight, and the reader who made it gets the book first.",
			asks: []string{
				"The novel that our reading circle takes next is out everywhere. There are {n} of us. What can you do?",
				"I need a thesis from 1987 that only the university in another county has. Can you get it to {place}?",
			},
			answer: "What is out can be reserved for 0.80, free for pupils, and waits ten days at {place} once it is back. For reading circles we buy additional copies if you tell us six weeks ahead. What no branch has I order from another library for 3.00; that takes two to three weeks as a rule, and single articles come as copies within four days.",
			follow: "Could you suggest that the library buys it? I think that others would like it too.",
			reply:  "Gladly, I put it on the list with your card number. You get an answer within a fortnight, and if it is bought you are the first to read it.",
		},
		{
			title: "Rooms and computers",
			handbook: "Seven branches have study rooms for two to eight people, booked up to 14 days ahead for at most three hours a day, free of charge. The hall of the main branch seats 80 and costs 15.00 an hour, nothing for societies that are open to all. Computers are free for two hours a day with a card, and one hour without. " +
				"Prints cost 0.10 a page, scans nothing. The wireless network needs no password; it ends at closing time. Food stays outside, drinks with a lid are welcome.",
			asks: []string{
				"Is there a room at {place} for a group of {n} on {day} afternoon? We are preparing for an exam.",
				"Can I print and scan at {place} without being a member?",
			},
			answer: "Study rooms take two to eight people, are free, and can be booked online up to 14 days ahead for three hours a day; for a larger group there is the hall of the main branch. Computers may be used for an hour without a card and for two with one. Prints are 0.10 a page and scans cost nothing, so bring a memory stick to {place} or send them to yourself.",
			follow: "Would the hall cost anything for our chess club? Everyone may come to our evenings.",
			reply:  "For a society that is open to all it is free. The hall seats 80 and is booked by the main branch, best a month ahead, because the evenings fill up in winter.",
		},
		{
			title: "E-books and streaming",
			handbook: "E-books and audio books are lent for 21 days and return by themselves, ten at a time; they work on readers that open EPUB with the usual protection, on telephones and in the browser, not on devices that are tied to one shop. Popular titles have waiting lists, as each licence is read by one person at a time. " +
				"Films can be streamed, four a month. The newspapers' archive goes back to 1946. Problems with a device are solved on weekdays between four and six at the digital desk of the main branch, or by telephone.",
			asks: []string{
				"My reader says that the licence of the book is not valid. I borrowed it on {day}.",
				"Why do I have to wait {n} weeks for an e-book? It can't be out of stock.",
			},
			answer: "Each licence can be read by one person at a time, which is why there are waiting lists for electronic books too. A message about an invalid licence comes mostly from two accounts on one device: sign out in the reader, sign in with the account under which you borrowed, and download the file again. If it remains, bring the device to the digital desk of the main branch between four and six.",
			follow: "How many books can I have at a time, and must I return them myself?",
			reply:  "Ten at a time, for 21 days each, and they return by themselves, so there is never a fee. If you finish early, returning by hand makes the next reader happy.",
		},
		{
			title: "The mobile library and home delivery",
			handbook: "The mobile library stops at 34 places, every second week, for 40 minutes each; the timetable is online and on the bus. It carries 3,000 items and brings whatever was reserved. In snow it stays at home, and all loans of its readers are renewed by two weeks. " +
				"Readers who can't come because of age, illness or care are visited by volunteers once a month with a bag of up to 12 items, large print and audio books among them. The service is free and needs a telephone call, no certificate.",
			asks: []string{
				"My mother can't leave her flat any more and reads {n} books in a month. Is there any way to bring books to her?",
				"The bus didn't come on {day}. Will I have to pay for the books that I couldn't return?",
			},
			answer: "Volunteers visit readers who can't come, once a month, with up to 12 items, large print and audio books among them; a telephone call is enough, no certificate is needed. If the bus can't drive, all loans of its readers are renewed by two weeks, so there is nothing to pay. The next date of {place} is in the online timetable.",
			follow: "Can she choose the books herself?",
			reply:  "Certainly: she can reserve by telephone, or tell the volunteer which authors she likes, and the bag is packed accordingly. Many also enjoy a surprise or two in it.",
		},
	},
}
